"""`make demo`: one whole cycle on this machine, watched and checked.

Starts `tidework dev` on tidework.yaml, shows what it tells, waits until the CronTask's run is
reported and the workers are gone, compares the numbers, and exits 0 with the report's place.
Whatever happens, dev is ended before this program is.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo_checks import Numbers, faults, gather
from demo_process import DevProcess
from demo_watch import QUEUE, Watch
from stdlib_index.sources import find_sources
from stdlib_index.tasks import report_id

from tidework import Client, JobRecord, JobState, Settings
from tidework.dev.console import render
from tidework.errors import BrokerError, JobNotFoundError

HERE = Path(__file__).resolve().parent
LOOK_EVERY_S = 0.2
LAST_EVENTS_WAIT_S = 5.0
INTERRUPTED = 130


class DemoError(Exception):
    """The demonstration did not come to its end, and why."""


@dataclass(frozen=True, slots=True)
class Options:
    """keep: stay up afterwards; out: folder of the report; limit: seconds to reach the end."""

    keep: bool
    out: Path
    limit: float


def read_options(arguments: list[str]) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="demo.py", description="Index the standard library.")
    parser.add_argument("--keep", action="store_true", help="stay up afterwards, until Ctrl-C")
    parser.add_argument(
        "--out", type=Path, default=HERE / "out", help="folder of the report (%(default)s)"
    )
    parser.add_argument(
        "--limit", type=float, default=150.0, help="give up after so many seconds (%(default)g)"
    )
    found = parser.parse_args(arguments)
    return Options(found.keep, found.out.resolve(), found.limit)


class Demonstration:
    """One run of it. ``folder`` holds the server's data and the log of dev."""

    def __init__(self, options: Options, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._watch = Watch()
        self._started = time.monotonic()

    async def run(self) -> int:
        """Returns the exit code."""
        dev = await DevProcess.start(HERE / "tidework.yaml", self._folder, self._options.out)
        listening = asyncio.create_task(dev.listen(self._tell), name="listen")
        task = asyncio.current_task()
        assert task is not None
        _on_interrupt(task.cancel)
        code = 1
        try:
            code = await self._prove(listening)
            if self._options.keep:
                self._tell_kept()
                await asyncio.shield(listening)
        except DemoError as error:
            print(f"\nFAILED: {error}\nThe end of dev's log:\n{dev.last_words()}")
        except asyncio.CancelledError:
            code = code if self._options.keep and code == 0 else INTERRUPTED
        finally:
            _on_interrupt(dev.interrupt)
            ended = await dev.stop()
            await _end(listening)
        if code == 0 and ended != 0:
            print(f"\nFAILED: expected `tidework dev` to end with exit code 0, found {ended}")
            return 1
        return code

    def _tell(self, event: Mapping[str, Any]) -> None:
        self._watch.note(event)
        print(render(event), flush=True)

    async def _prove(self, listening: asyncio.Task[int]) -> int:
        """Wait for the end of the run, then check it: 0, or 1 with what did not hold."""
        try:
            async with asyncio.timeout(self._options.limit):
                numbers = await self._numbers(listening)
        except TimeoutError:
            raise DemoError(
                f"it did not reach its end within {self._options.limit:g} s (--limit)"
            ) from None
        except BrokerError as error:
            raise DemoError(f"the queue could not be read: {error}") from error
        wrong = list(faults(numbers))
        if wrong:
            print("\n" + "\n".join(f"FAILED: {fault}" for fault in wrong))
            return 1
        self._tell_summary(numbers)
        return 0

    async def _numbers(self, listening: asyncio.Task[int]) -> Numbers:
        watch = self._watch
        while not (watch.redis_url and watch.run):
            await _pause(listening)
        client = Client(Settings.load(redis_url=watch.redis_url, namespace="default"))
        try:
            while not await self._is_over(client):
                await _pause(listening)
            on_disk = len(await asyncio.to_thread(find_sources))
            return await gather(client, watch.run, on_disk, watch.steps)
        finally:
            await client.close()

    async def _is_over(self, client: Client) -> bool:
        for job_id in (self._watch.run, report_id(self._watch.run)):
            record = await _look(client, job_id)
            if record is None:
                return False
            if record.state is JobState.DEAD:
                reason = record.error.message if record.error else "no reason was kept"
                raise DemoError(f"job {job_id} died: {reason}")
            if record.state is not JobState.SUCCEEDED:
                return False
        return self._watch.went_down and (await client.stats(QUEUE)).unfinished == 0

    def _tell_summary(self, found: Numbers) -> None:
        steps = self._watch.steps
        way = " -> ".join(str(count) for count in [0, *(step.after for step in steps)])
        print(f"\n{found.files:,} files = {found.succeeded:,} measured + {len(found.dead)} dead")
        for reason in sorted(found.dead.values()):
            print(f"  dead: {reason}")
        print(f"workers: {way}, in {time.monotonic() - self._started:.0f} s")
        print(f"report: {found.report}")

    def _tell_kept(self) -> None:
        print(f"\nStaying up until Ctrl-C. Redis: {self._watch.redis_url}")
        enqueue = f"{sys.executable} -m tidework enqueue index --queue {QUEUE}"
        print(f"Once more: {enqueue} --redis-url {self._watch.redis_url}", flush=True)


async def _look(client: Client, job_id: str) -> JobRecord | None:
    try:
        return await client.get(job_id, queue=QUEUE)
    except JobNotFoundError:
        return None


async def _pause(listening: asyncio.Task[int]) -> None:
    """Wait a moment, unless dev ends. Raises DemoError then."""
    done, _ = await asyncio.wait([listening], timeout=LOOK_EVERY_S)
    if done:
        raise DemoError(f"`tidework dev` ended with exit code {listening.result()}")


async def _end(listening: asyncio.Task[int]) -> None:
    """Dev is gone: take in what it told last. A pipe that somebody else holds is given up."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(listening, LAST_EVENTS_WAIT_S)


def _on_interrupt(action: Callable[[], object]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, action)


def main(arguments: list[str]) -> int:
    """The program."""
    options = read_options(arguments)
    folder = Path(tempfile.mkdtemp(prefix="stdlib-index-"))
    code = 1
    try:
        code = asyncio.run(Demonstration(options, folder).run())
    finally:
        if code == 0 and not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"data and log: {folder}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
