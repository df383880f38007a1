"""RQ: a pool of workers, each forks a process for each job."""

from __future__ import annotations

import os
from typing import Any

import work
from redis import Redis
from rq import Queue, Retry

DELIVERY = "at least once (with Retry), by maintenance every 10 min"
SETTINGS = "worker-pool of concurrency, Retry(max=3), result_ttl 0"
PACKAGES = ("rq", "redis", "hiredis")
JOBS = 250

queue = Queue(connection=Redis.from_url(os.environ["BENCHMARK_REDIS"]))


def commands(concurrency: int, processes: int) -> list[list[str]]:  # noqa: ARG001
    """One parent, a worker process for each job at a time."""
    command = ["rq", "worker-pool", "--num-workers", str(concurrency), "--quiet"]
    return [[*command, "--logging-level", "WARNING", "--url", os.environ["BENCHMARK_REDIS"]]]


def enqueue(task: str, params: dict[str, Any]) -> None:
    """One job."""
    queue.enqueue_call(
        getattr(work, task), kwargs=params, result_ttl=0, retry=Retry(max=3), timeout=180
    )


def enqueue_many(task: str, jobs: list[dict[str, Any]]) -> None:
    """Jobs in pipelines of 1,000."""
    for start in range(0, len(jobs), 1000):
        queue.enqueue_many(
            Queue.prepare_data(
                getattr(work, task), kwargs=params, result_ttl=0, retry=Retry(max=3), timeout=180
            )
            for params in jobs[start : start + 1000]
        )
