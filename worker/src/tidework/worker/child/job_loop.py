"""Event loops of children: whatever an asyncio task raises, the loop goes on.

asyncio lets SystemExit and KeyboardInterrupt out of the loop. A task that a job started may raise
them; that is no more the end of the process than any other exception.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any

LEFT_PATIENCE = 1.0
"""Seconds in which tasks that a job left behind have to end."""


def run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    """Until somebody calls ``loop.stop()``."""
    while not _has_run(loop):
        pass


def _has_run(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        loop.run_forever()
    except (SystemExit, KeyboardInterrupt) as error:
        _tell(loop, error)
        return False
    return True


class JobLoop:
    """A loop for one job after another; what clients keep of it stays good for the next."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[Any] | None = None
        asyncio.set_event_loop(self._loop)

    def cancel(self) -> None:
        """Cancel what the job that runs awaits; from within a signal's handler."""
        if self._task is not None:  # else it looks itself before its first step
            self._loop.call_soon_threadsafe(self._task.cancel)

    def run(self, job: Coroutine[Any, Any, Any], context: Context) -> Any:
        """What the job returns. What it left running is ended after it."""
        task = self._task = self._loop.create_task(job, context=context)
        while not task.done():
            try:
                self._loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt) as error:
                _tell(self._loop, error)
        self._task = None
        if left := asyncio.all_tasks(self._loop):
            for other in left:
                other.cancel()
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_until_complete(asyncio.wait(left, timeout=LEFT_PATIENCE))
        return task.result()

    def close(self) -> None:
        """End it."""
        self._loop.close()


def _tell(loop: asyncio.AbstractEventLoop, error: BaseException) -> None:
    text = "an asyncio task that a job started raised what would end a program"
    loop.call_exception_handler({"message": text, "exception": error})
