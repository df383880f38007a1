"""Huey: processes that pop jobs; a job in a process that dies is gone."""

from __future__ import annotations

import os
from typing import Any

import work
from huey import RedisHuey

DELIVERY = "at most once"
SETTINGS = "worker type process, blocking pop, no results, no periodic tasks"
PACKAGES = ("huey", "redis", "hiredis")
JOBS = 15_000

huey = RedisHuey("benchmark", url=os.environ["BENCHMARK_REDIS"], results=False)
TASKS = {name: huey.task(name=name)(getattr(work, name)) for name in ("noop", "nap", "burn")}


def commands(concurrency: int, processes: int) -> list[list[str]]:  # noqa: ARG001
    """One parent, a process for each job at a time."""
    command = ["huey_consumer", "app.huey", "--workers", str(concurrency)]
    return [[*command, "--worker-type", "process", "--no-periodic", "--quiet"]]


def enqueue(task: str, params: dict[str, Any]) -> None:
    """One job."""
    TASKS[task](**params)


def enqueue_many(task: str, jobs: list[dict[str, Any]]) -> None:
    """One after another: there is no bulk call."""
    for params in jobs:
        TASKS[task](**params)
