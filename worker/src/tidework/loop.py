"""The one loop of the product.

A Loop calls ``tick`` again and again; ``tick`` returns how long to wait before the next call.
The wait ends early when the loop is nudged or stopped. An error in a tick does not end the loop if
``tolerates`` names it: it is logged and the next tick comes after ``pause``.

A program that handles signals on its event loop calls ``accept_signals`` first.
"""

from __future__ import annotations

import asyncio
import logging
import math
import signal
from collections.abc import Awaitable, Callable
from datetime import timedelta

LONG = 2.0
"""Seconds from which on waits end together with others: up to one second early, and from twice as
much on up to two."""

logger = logging.getLogger(__name__)

Tick = Callable[[], Awaitable[timedelta]]


def accept_signals() -> None:
    """Have every signal delivered to this process, and to those that it starts from now on.

    For programs, at their start, before they have threads: a parent that has blocked signals hands
    that down. Without SIGCHLD a worker does not learn that a child has ended; without SIGTERM
    nothing ends in order.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


class Loop:
    """Run ``tick`` until stopped.

    name:      shown in logs
    tick:      does one round, returns the wait until the next
    tolerates: errors after which the loop goes on
    pause:     the wait after such an error
    """

    def __init__(
        self,
        name: str,
        tick: Tick,
        *,
        tolerates: tuple[type[Exception], ...] = (),
        pause: timedelta = timedelta(seconds=1),
    ) -> None:
        self.name = name
        self._tick = tick
        self._tolerates = tolerates
        self._pause = pause
        self._nudged = False
        self._waiter: asyncio.Future[None] | None = None
        self._stopping = False

    @property
    def is_stopping(self) -> bool:
        """It was told to end, and may have ended."""
        return self._stopping

    def nudge(self) -> None:
        """Have the next tick now."""
        self._nudged = True
        self._wake()

    def stop(self) -> None:
        """End after the current tick."""
        self._stopping = True
        self.nudge()

    async def run(self) -> None:
        """Tick until stopped. Raises what a tick raises and ``tolerates`` does not name."""
        while not self._stopping:
            self._nudged = False
            try:
                wait = await self._tick()
            except self._tolerates as error:
                logger.warning("%s: %s", self.name, error, extra={"event": "round_failed"})
                wait = self._pause
            if self._stopping:
                return
            await self._sleep(wait)

    async def _sleep(self, wait: timedelta) -> None:
        # A future and a timer: this is on the way of every job.
        if self._nudged:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        late = loop.call_at(_end_of(loop.time(), wait.total_seconds()), self._wake)
        try:
            await self._waiter
        finally:
            late.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Grid:
    """Whole seconds since the first long wait of this process: not those of other processes."""

    start: float | None = None


def shortened(wait: timedelta) -> timedelta:
    """The wait as a Loop would make it now, for what waits elsewhere. Inside a running loop."""
    now = asyncio.get_running_loop().time()
    return timedelta(seconds=_end_of(now, wait.total_seconds()) - now)


def _end_of(now: float, seconds: float) -> float:
    """When a wait ends. Long ones end on the grid: a process that wakes up once for several of
    its loops spends a fraction of what it would on each."""
    if seconds < LONG:
        return now + max(0.0, seconds)
    if _Grid.start is None or now < _Grid.start:
        _Grid.start = now
    step = 1 if seconds < 2 * LONG else 2
    return _Grid.start + step * math.floor((now + seconds - _Grid.start) / step)
