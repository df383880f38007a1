"""Tidework: each job has a lease, results and ended jobs are kept as usual.

Slots are processes; with BENCHMARK_VARIANT=async jobs run on the event loop of one process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import work

from tidework import Tidework
from tidework.model.job import JobState
from tidework.settings import Settings

DELIVERY = "at least once, leases renewed"
ASYNC = os.environ.get("BENCHMARK_VARIANT") == "async"
HOW = "--async-slots = concurrency" if ASYNC else "--slots = concurrency"
SETTINGS = f"defaults; {HOW}, log level warning"
PACKAGES = ("tidework", "redis", "hiredis")
JOBS = 15_000
QUEUES = int(os.environ.get("BENCHMARK_QUEUES", "0"))
"""So many queues besides the usual one; jobs of the task "spread" are spread over them."""

app = Tidework("benchmark", settings=Settings(redis_url=os.environ["BENCHMARK_REDIS"]))


async def noop(number: int, text: str = "") -> None:
    work.noop(number, text)


async def burn(number: int, rounds: int) -> None:
    work.burn(number, rounds)


async def crash(number: int) -> None:
    work.crash(number)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "noop": noop if ASYNC else work.noop,
    "nap": work.nap_async if ASYNC else work.nap,
    "burn": burn if ASYNC else work.burn,
    "crash": crash if ASYNC else work.crash,
}
TASKS = {name: app.task(name=name)(function) for name, function in FUNCTIONS.items()}
SPREAD = [
    app.task(name=f"noop-{index}", queue=f"queue-{index}")(FUNCTIONS["noop"])
    for index in range(QUEUES)
]


def commands(concurrency: int, processes: int) -> list[list[str]]:  # noqa: ARG001
    """One supervisor, a process for each slot or for all async jobs."""
    places = ["--async-slots" if ASYNC else "--slots", str(concurrency)]
    command = ["tidework", "worker", "--app", "app", *places]
    command += ["--log-level", "warning", "--queue", "default"]
    return [command + [part for i in range(QUEUES) for part in ("--queue", f"queue-{i}")]]


def count_dead() -> int:
    """Dead letters."""
    return app.client.stats_sync("default").states[JobState.DEAD]


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
