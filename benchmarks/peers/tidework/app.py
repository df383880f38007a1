"""Tidework: slots are processes, each job has a lease, results and ended jobs are kept as usual."""

from __future__ import annotations

import os
from typing import Any

import work

from tidework import Tidework
from tidework.settings import Settings

DELIVERY = "at least once, leases renewed"
SETTINGS = "defaults; --slots = concurrency, log level warning"
PACKAGES = ("tidework", "redis", "hiredis")
JOBS = 15_000
QUEUES = int(os.environ.get("BENCHMARK_QUEUES", "0"))
"""So many queues besides the usual one; jobs of the task "spread" are spread over them."""

app = Tidework("benchmark", settings=Settings(redis_url=os.environ["BENCHMARK_REDIS"]))
TASKS = {name: app.task(name=name)(getattr(work, name)) for name in ("noop", "nap", "burn")}
SPREAD = [
    app.task(name=f"noop-{index}", queue=f"queue-{index}")(work.noop) for index in range(QUEUES)
]


def commands(concurrency: int, processes: int) -> list[list[str]]:  # noqa: ARG001
    """One supervisor, a process for each slot."""
    command = ["tidework", "worker", "--app", "app", "--slots", str(concurrency)]
    command += ["--log-level", "warning", "--queue", "default"]
    return [command + [part for i in range(QUEUES) for part in ("--queue", f"queue-{i}")]]


def enqueue(task: str, params: dict[str, Any]) -> None:
    """One job."""
    TASKS[task].enqueue_sync(**params)


def enqueue_many(task: str, jobs: list[dict[str, Any]]) -> None:
    """Jobs in batches of 500, as the SDK makes them."""
    if task == "spread":
        for index, spread in enumerate(SPREAD):
            spread.enqueue_many_sync(jobs[index::QUEUES])
    else:
        TASKS[task].enqueue_many_sync(jobs)
