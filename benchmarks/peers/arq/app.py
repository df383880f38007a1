"""arq: an event loop that takes up to max_jobs jobs at each poll."""

from __future__ import annotations

import asyncio
import os
from typing import Any, ClassVar

import work
from arq import create_pool
from arq.connections import ArqRedis, RedisSettings

DELIVERY = "at least once, after job_timeout + 10 s"
SETTINGS = (
    "max_jobs = concurrency / processes, keep_result 0, log level warning, "
    "poll_delay 5 ms (0.5 s, the default, where it idles or crashes)"
)
PACKAGES = ("arq", "redis", "hiredis")
JOBS = 3_000
REDIS = RedisSettings.from_dsn(os.environ["BENCHMARK_REDIS"])


async def noop(_context: Any, **params: Any) -> None:
    work.noop(**params)


async def burn(_context: Any, **params: Any) -> None:
    work.burn(**params)


async def nap(_context: Any, **params: Any) -> None:
    await work.nap_async(**params)


class WorkerSettings:
    """What the command line reads."""

    functions: ClassVar = [noop, burn, nap]
    redis_settings = REDIS
    max_jobs = int(os.environ.get("BENCHMARK_CONCURRENCY", "10"))
    poll_delay = 0.005 if os.environ.get("BENCHMARK_PROCESSES") == "2" else 0.5
    keep_result = 0


QUIET = {"version": 1, "loggers": {"arq": {"level": "WARNING"}}}
pools: list[ArqRedis] = []


def commands(concurrency: int, processes: int) -> list[list[str]]:
    """Processes side by side."""
    command = ["arq", "app.WorkerSettings", "--custom-log-dict", "app.QUIET"]
    return [command] * min(processes, concurrency)


async def start() -> None:
    """Connect."""
    pools.append(await create_pool(REDIS))


async def enqueue(task: str, params: dict[str, Any]) -> None:
    """One job."""
    await pools[0].enqueue_job(task, **params)


async def enqueue_many(task: str, jobs: list[dict[str, Any]]) -> None:
    """100 at a time over a pool: there is no bulk call."""
    for at in range(0, len(jobs), 100):
        await asyncio.gather(*(enqueue(task, params) for params in jobs[at : at + 100]))
