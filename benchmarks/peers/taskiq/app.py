"""Taskiq over a Redis stream, the broker of taskiq-redis that acknowledges."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import work
from taskiq_redis import RedisStreamBroker

DELIVERY = "at least once, idle_timeout 10 min"
SETTINGS = "RedisStreamBroker, async tasks = concurrency / processes, no result backend, uvloop"
PACKAGES = ("taskiq", "taskiq-redis", "redis", "hiredis", "uvloop")
JOBS = 10_000
UVLOOP = True

broker = RedisStreamBroker(url=os.environ["BENCHMARK_REDIS"])


@broker.task(task_name="noop")
async def noop(number: int, text: str = "") -> None:
    work.noop(number, text)


@broker.task(task_name="burn")
async def burn(number: int, rounds: int) -> None:
    work.burn(number, rounds)


TASKS = {"noop": noop, "burn": burn, "nap": broker.task(task_name="nap")(work.nap_async)}


def commands(concurrency: int, processes: int) -> list[list[str]]:
    """One parent, event loops as its children."""
    processes = min(processes, concurrency)
    command = ["taskiq", "worker", "app:broker", "--workers", str(processes)]
    command += ["--max-async-tasks", str(concurrency // processes), "--log-level", "WARNING"]
    return [command]


async def start() -> None:
    """Make the stream's group, as a program that enqueues has to."""
    await broker.startup()


async def enqueue(task: str, params: dict[str, Any]) -> None:
    """One job."""
    await TASKS[task].kiq(**params)


async def enqueue_many(task: str, jobs: list[dict[str, Any]]) -> None:
    """100 at a time over a pool: there is no bulk call."""
    for at in range(0, len(jobs), 100):
        await asyncio.gather(*(TASKS[task].kiq(**params) for params in jobs[at : at + 100]))
