"""The producer: runs in a system's own environment, takes orders as lines of JSON.

It imports the system's ``app`` module, enqueues through it, and says what that cost: wall time
and the CPU time of this process. Orders are prepared before the clock starts.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import random
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import app

Document = dict[str, Any]


def make_runner() -> asyncio.Runner:
    """An event loop as the system's documentation recommends it."""
    if getattr(app, "UVLOOP", False):
        import uvloop

        return asyncio.Runner(loop_factory=uvloop.new_event_loop)
    return asyncio.Runner()


class Producer:
    """Carries out orders, over one event loop if the system's functions are coroutines."""

    def __init__(self) -> None:
        self._runner = make_runner()
        self._is_open = False

    def describe(self, concurrency: int, processes: int) -> Document:
        """What the harness has to know of the system."""
        return {
            "commands": app.commands(concurrency, processes),
            "settings": app.SETTINGS,
            "delivery": app.DELIVERY,
            "jobs": app.JOBS,
            "versions": {name: version(name) for name in app.PACKAGES},
        }

    def enqueue(
        self, task: str, count: int, first: int, params: Document, *, bulk: bool
    ) -> Document:
        """Enqueue jobs ``first`` .. ``first + count - 1``. Returns wall and CPU seconds."""
        self._open()
        jobs = [{"number": number, **params} for number in range(first, first + count)]
        began, began_cpu = time.perf_counter(), time.process_time()
        if bulk:
            self._call(app.enqueue_many, task, jobs)
        elif inspect.iscoroutinefunction(app.enqueue):
            self._runner.run(_one_by_one(task, jobs))
        else:
            for job in jobs:
                app.enqueue(task, job)
        wall = time.perf_counter() - began
        return {"wall": wall, "cpu": time.process_time() - began_cpu}

    def wake(self, count: int, first: int, pause: float, limit: float) -> Document:
        """Enqueue a no-op, wait until it ran, pause; ``count`` times or ``limit`` seconds.

        Returns when each was about to be enqueued. The pauses are of random length so as not to
        fall into step with a system that polls.
        """
        self._open()
        times: list[float] = []
        deadline = time.monotonic() + limit
        while len(times) < count and time.monotonic() < deadline:
            time.sleep(pause * random.uniform(0.5, 1.5))
            size = _ledger_size()
            times.append(time.monotonic())
            self._call(app.enqueue, "noop", {"number": first + len(times) - 1})
            while _ledger_size() == size:
                if time.monotonic() > deadline + 30:
                    raise TimeoutError("an idle worker did not take the job")
                time.sleep(0.0005)
        return {"times": times}

    def count_dead(self) -> Document:
        """How many jobs the system has given up."""
        return {"dead": app.count_dead()}

    def close(self) -> None:
        """End what the event loop still runs."""
        self._runner.close()

    def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            self._call(getattr(app, "start", _nothing))

    def _call(self, function: Callable[..., Any], *arguments: Any) -> None:
        if inspect.iscoroutinefunction(function):
            self._runner.run(function(*arguments))
        else:
            function(*arguments)


def _nothing() -> None:
    """For a system that needs no preparation."""


async def _one_by_one(task: str, jobs: list[Document]) -> None:
    for job in jobs:
        await app.enqueue(task, job)


def _ledger_size() -> int:
    return Path(os.environ["BENCHMARK_LEDGER"]).stat().st_size


def main() -> None:
    """Orders on standard input, answers on standard output, until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the system prints is no answer
    producer = Producer()
    for line in sys.stdin:
        order = json.loads(line)
        answer = getattr(producer, order.pop("do"))(**order)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    producer.close()


if __name__ == "__main__":
    main()
