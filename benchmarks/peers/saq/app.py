"""SAQ: event loops; a job is tried again only if retries are asked for."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import work
from saq import Queue

DELIVERY = "at least once (with retries), swept after the job's timeout"
SETTINGS = "async tasks = concurrency / processes, retries 3, timeout 30 s, results off"
PACKAGES = ("saq", "redis", "hiredis")
JOBS = 5_000
OPTIONS = {"retries": 3, "timeout": 30, "ttl": -1}

queue = Queue.from_url(os.environ["BENCHMARK_REDIS"])


async def noop(_context: Any, **params: Any) -> None:
    work.noop(**params)


async def burn(_context: Any, **params: Any) -> None:
    work.burn(**params)


async def nap(_context: Any, **params: Any) -> None:
    await work.nap_async(**params)


settings = {
    "queue": queue,
    "functions": [noop, burn, nap],
    "concurrency": int(os.environ.get("BENCHMARK_CONCURRENCY", "10")),
}


def commands(concurrency: int, processes: int) -> list[list[str]]:
    """One parent, which works as well, and its children."""
    return [["saq", "app.settings", "--quiet", "--workers", str(min(processes, concurrency))]]


async def start() -> None:
    """Connect."""
    await queue.connect()


async def enqueue(task: str, params: dict[str, Any]) -> None:
    """One job."""
    await queue.enqueue(task, **OPTIONS, **params)


async def enqueue_many(task: str, jobs: list[dict[str, Any]]) -> None:
    """100 at a time over a pool: there is no bulk call."""
    for at in range(0, len(jobs), 100):
        await asyncio.gather(*(enqueue(task, params) for params in jobs[at : at + 100]))
