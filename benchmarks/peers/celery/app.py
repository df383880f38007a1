"""Celery: prefork, late acknowledgement; BENCHMARK_VARIANT=prefetch-1 takes one job at a time."""

from __future__ import annotations

import os
from typing import Any

import work
from celery import Celery

PREFETCH = 1 if os.environ.get("BENCHMARK_VARIANT") == "prefetch-1" else 4
DELIVERY = "at least once after visibility_timeout (1 h)"
SETTINGS = (
    f"prefork, acks_late, reject_on_worker_lost, prefetch {PREFETCH}, results ignored, "
    "no gossip, mingle or heartbeat"
)
PACKAGES = ("celery", "kombu", "billiard", "redis", "hiredis")
JOBS = 3_000

app = Celery("benchmark", broker=os.environ["BENCHMARK_REDIS"])
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=PREFETCH,
    broker_connection_retry_on_startup=True,
)
TASKS = {name: app.task(name=name)(getattr(work, name)) for name in ("noop", "nap", "burn")}


def commands(concurrency: int, processes: int) -> list[list[str]]:  # noqa: ARG001
    """One parent, a process for each job at a time."""
    command = ["celery", "--app", "app", "worker", "--pool", "prefork", "--loglevel", "WARNING"]
    command += ["--concurrency", str(concurrency), "--hostname", f"{os.getpid()}@%h"]
    return [[*command, "--without-gossip", "--without-mingle", "--without-heartbeat"]]


def enqueue(task: str, params: dict[str, Any]) -> None:
    """One job."""
    TASKS[task].apply_async(kwargs=params)


def enqueue_many(task: str, jobs: list[dict[str, Any]]) -> None:
    """One after another over one connection: there is no bulk call."""
    with app.producer_or_acquire() as producer:
        for params in jobs:
            TASKS[task].apply_async(kwargs=params, producer=producer)
