"""Health: what the probes answer, from what the supervisor's loop wrote down last.

Alive: the loop turns and no child is past its verdict unreaped, whatever Redis does.
Ready: once Redis answered and the application was imported, until the worker drains.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from tidework.clock import Clock
from tidework.loop import Loop
from tidework.metrics import MetricsPage, WorkerNumbers
from tidework.worker import stacks
from tidework.worker.places.slots import SlotPool

TURN_WITHIN = 10.0
"""Seconds in which the loop has to turn."""
REAP_WITHIN = 5.0
"""Seconds in which a killed child has to be gone."""
_EVERY, _WHILE_UNREAPED = timedelta(seconds=4), timedelta(seconds=1)

MOST_OF_STACKS = 16_384
"""Bytes that are logged of a supervisor that is stuck."""

logger = logging.getLogger(__name__)


class WorkerHealth:
    """Answers the probes; written by the loop, read from their thread."""

    def __init__(self, pool: SlotPool, numbers: WorkerNumbers, clock: Clock) -> None:
        self.redis_answered = False
        self.app_imported = False
        self.draining = False
        self.loop = Loop("pulse", self._tick)
        self._pool = pool
        self._clock = clock
        self._numbers = numbers
        self._page = MetricsPage(numbers)
        self._turned_at = clock.monotonic()
        self._unreaped_since: float | None = None
        self._stuck_told = False

    async def _tick(self) -> timedelta:
        self._turned_at = self._clock.monotonic()
        self._stuck_told = False
        self._unreaped_since = self._pool.unreaped_since()
        return _EVERY if self._unreaped_since is None else _WHILE_UNREAPED

    def livez(self) -> str:
        now = self._clock.monotonic()
        if (still := now - self._turned_at) > TURN_WITHIN:
            reason = f"the supervisor's loop has not turned for {still:.0f} s"
            self._tell_stuck(reason)
            return reason
        if self._unreaped_since is not None and now - self._unreaped_since > REAP_WITHIN:
            return f"a killed child has not ended for {now - self._unreaped_since:.0f} s"
        return ""

    def _tell_stuck(self, reason: str) -> None:
        """Say where, once: it cannot say so itself, and will be killed for it."""
        if not self._stuck_told:
            self._stuck_told = True
            logger.error(
                reason, extra={"event": "worker_stuck", "stacks": stacks.text_now(MOST_OF_STACKS)}
            )

    def readyz(self) -> str:
        if self.draining:
            return "draining"
        if not self.app_imported:
            return "the application is not imported yet"
        return "" if self.redis_answered else "Redis has not answered yet"

    def redisz(self) -> str:
        return self._numbers.redis_trouble

    def metrics(self) -> bytes:
        return self._page.text()
