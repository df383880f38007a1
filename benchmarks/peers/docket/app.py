"""docket (pydocket): an event loop over a stream."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from datetime import timedelta
from typing import Any

import work
from docket import Docket, Worker

DELIVERY = "at least once, redelivery after 5 min, renewed"
SETTINGS = (
    "concurrency / processes, execution_ttl 0 (no records of ended jobs), log level warning, "
    "minimum_check_interval 1 ms (100 ms, the default, where it idles or crashes)"
)
PACKAGES = ("pydocket", "redis", "hiredis")
JOBS = 6_000


async def noop(number: int, text: str = "") -> None:
    work.noop(number, text)


async def burn(number: int, rounds: int) -> None:
    work.burn(number, rounds)


async def nap(number: int, seconds: float) -> None:
    await work.nap_async(number, seconds)


tasks = [noop, burn, nap]
docket = Docket("benchmark", os.environ["BENCHMARK_REDIS"], execution_ttl=timedelta(0))


def commands(concurrency: int, processes: int) -> list[list[str]]:
    """Processes side by side."""
    # A worker whose slots are all busy looks again only after this interval.
    interval = 0.001 if processes > 1 else 0.1
    # Not its command line, which has no option for execution_ttl.
    command = ["python", "-m", "app", str(concurrency // min(processes, concurrency))]
    return [[*command, str(interval)]] * min(processes, concurrency)


async def start() -> None:
    """Connect, for as long as this process lives."""
    for task in tasks:
        docket.register(task)
    await docket.__aenter__()


async def enqueue(task: str, params: dict[str, Any]) -> None:
    """One job."""
    await docket.add(task)(**params)


async def enqueue_many(task: str, jobs: list[dict[str, Any]]) -> None:
    """Jobs in pipelines of 1,000."""
    await docket.add_many(docket.call(task)(**params) for params in jobs)


async def work_for_ever(concurrency: int, interval: timedelta) -> None:
    """A worker, as its documentation embeds one."""
    logging.basicConfig(level=logging.WARNING)
    async with docket:
        worker = Worker(docket, concurrency=concurrency, minimum_check_interval=interval)
        async with worker:
            await worker.run_forever()


if __name__ == "__main__":
    for task in tasks:
        docket.register(task)
    asyncio.run(work_for_ever(int(sys.argv[1]), timedelta(seconds=float(sys.argv[2]))))
