"""streaQ: event loops over a stream and a library of functions in Redis."""

from __future__ import annotations

import logging
import os
from typing import Any

import work
from streaq import Worker

DELIVERY = "at least once, idle_timeout 60 s, renewed"
SETTINGS = "async tasks = concurrency / processes, ttl 0 (no results), uvloop, log level warning"
PACKAGES = ("streaq", "coredis", "uvloop")
JOBS = 5_000
UVLOOP = True

worker: Worker[Any] = Worker(
    redis_url=os.environ["BENCHMARK_REDIS"],
    concurrency=int(os.environ.get("BENCHMARK_CONCURRENCY", "10")),
    anyio_kwargs={"use_uvloop": True},
)
logging.getLogger("streaq").addFilter(lambda record: record.levelno >= logging.WARNING)


@worker.task(ttl=0, name="noop")
async def noop(number: int, text: str = "") -> None:
    work.noop(number, text)


@worker.task(ttl=0, name="burn")
async def burn(number: int, rounds: int) -> None:
    work.burn(number, rounds)


TASKS = {"noop": noop, "burn": burn, "nap": worker.task(ttl=0, name="nap")(work.nap_async)}


def commands(concurrency: int, processes: int) -> list[list[str]]:
    """Processes side by side, the first of them the parent."""
    return [["streaq", "run", "app:worker", "--workers", str(min(processes, concurrency))]]


async def start() -> None:
    """Connect, for as long as this process lives."""
    await worker.__aenter__()


async def enqueue(task: str, params: dict[str, Any]) -> None:
    """One job."""
    await TASKS[task].enqueue(**params)


async def enqueue_many(task: str, jobs: list[dict[str, Any]]) -> None:
    """Jobs in pipelines of 1,000."""
    for at in range(0, len(jobs), 1000):
        await worker.enqueue_many(
            [TASKS[task].enqueue(**params) for params in jobs[at : at + 1000]]
        )
