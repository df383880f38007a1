"""Dramatiq: processes with threads; acknowledgement after the job is all that it has."""

from __future__ import annotations

import os
from typing import Any

import dramatiq
import work
from dramatiq.brokers.redis import RedisBroker

DELIVERY = "at least once, worker heartbeat 60 s"
SETTINGS = "threads = concurrency / processes, default middleware and prefetch"
PACKAGES = ("dramatiq", "redis", "hiredis")
JOBS = 6_000

broker = RedisBroker(url=os.environ["BENCHMARK_REDIS"])
dramatiq.set_broker(broker)
TASKS = {
    name: dramatiq.actor(actor_name=name)(getattr(work, name)) for name in ("noop", "nap", "burn")
}


def commands(concurrency: int, processes: int) -> list[list[str]]:
    """One parent, processes of threads."""
    processes = min(processes, concurrency)
    threads = concurrency // processes
    return [["dramatiq", "app", "--processes", str(processes), "--threads", str(threads)]]


def enqueue(task: str, params: dict[str, Any]) -> None:
    """One job."""
    TASKS[task].send(**params)


def enqueue_many(task: str, jobs: list[dict[str, Any]]) -> None:
    """One after another: there is no bulk call."""
    for params in jobs:
        TASKS[task].send(**params)
