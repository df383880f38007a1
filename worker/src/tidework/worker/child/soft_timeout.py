"""Soft timeouts: SoftTimeout is raised inside the handler, once, at its deadline.

In a sync handler by SIGALRM: between two bytecodes of the main thread, or where a system call
waits. Code in C that does neither is reached when it returns; the hard timeout ends it anyway.
In an async handler where it awaits, by cancelling its asyncio task and turning the CancelledError
that arrives into SoftTimeout. It stays a CancelledError as well: asyncio.TaskGroup and others await
in their own cleanup and know only that one as a reason to end what they started.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Generator
from types import FrameType
from typing import Any

from tidework.errors import SoftTimeout
from tidework.model.task import TaskSpec

SHARE = 0.9
"""Of the hard timeout, where a soft one is not below it: time is left to end in order."""

logger = logging.getLogger(__name__)
_warned: set[tuple[str, float]] = set()


class CancelledBySoftTimeout(SoftTimeout, asyncio.CancelledError):
    """SoftTimeout as an async handler gets it."""


def soft_seconds(spec: TaskSpec, hard: float) -> float | None:
    """Seconds until the soft timeout of an attempt with the hard timeout ``hard``; None: none."""
    if spec.soft_timeout is None:
        return None
    wanted = spec.soft_timeout.total_seconds()
    if wanted < hard:
        return wanted
    if (spec.name, hard) not in _warned and len(_warned) < 1000:
        _warned.add((spec.name, hard))
        logger.warning(
            "task %s: the soft timeout of %g s is not below the hard timeout of %g s; "
            "it comes after %g s. Lower it, or raise hardTimeoutSeconds or the task's timeout",
            *(spec.name, wanted, hard, hard * SHARE),
            extra={"event": "soft_timeout_clipped"},
        )
    return hard * SHARE


def is_soft_timeout(error: BaseException) -> bool:
    """Is it one, or a group that holds one (asyncio.TaskGroup)?"""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(SoftTimeout) is not None
    return isinstance(error, SoftTimeout)


def call_limited(function: Callable[[], Any], seconds: float) -> Any:
    """Call it; SoftTimeout is raised in it after ``seconds``. In the main thread."""
    armed = True

    def strike(_number: int, _frame: FrameType | None) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise SoftTimeout(seconds)

    before = signal.signal(signal.SIGALRM, strike)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            return function()
        finally:
            armed = False
    finally:
        # Nothing strikes from here on: had it struck in the line above, it would be over as well.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)


class Limited:
    """An awaitable that runs a coroutine; SoftTimeout is raised in it after ``seconds``."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], seconds: float) -> None:
        self._coroutine = coroutine
        self._seconds = seconds
        self._due = False

    def __await__(self) -> Generator[Any, Any, Any]:
        task = asyncio.current_task()
        assert task is not None
        timer = asyncio.get_running_loop().call_later(self._seconds, self._strike, task)
        try:
            return (yield from self._drive(task))
        finally:
            timer.cancel()
            if self._due:  # what it awaited kept the cancellation to itself
                task.uncancel()

    def _strike(self, task: asyncio.Task[Any]) -> None:
        self._due = True
        task.cancel()

    def _drive(self, task: asyncio.Task[Any]) -> Generator[Any, Any, Any]:
        resume = self._sent
        while True:
            try:
                awaited = resume()
            except StopIteration as end:
                return end.value
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - it is the coroutine's
                resume = self._thrown(self._translated(error, task))
            else:
                resume = self._sent

    def _sent(self) -> Any:
        return self._coroutine.send(None)

    def _thrown(self, error: BaseException) -> Callable[[], Any]:
        return lambda: self._coroutine.throw(error)

    def _translated(self, error: BaseException, task: asyncio.Task[Any]) -> BaseException:
        if not self._due or not isinstance(error, asyncio.CancelledError):
            return error
        self._due = False
        task.uncancel()
        return CancelledBySoftTimeout(self._seconds)
