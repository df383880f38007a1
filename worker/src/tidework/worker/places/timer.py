"""One timer for many deadlines: set to the earliest, it asks what is due and when to look next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidework.clock import Clock

_SHORTEST = 0.01


class Timer:
    """Calls ``look(now)`` at or after the earliest time asked for; times are monotonic seconds.

    ``look`` returns when to be called next, None = not before it is asked for again.
    Asking costs next to nothing while an earlier look is due anyway.
    """

    def __init__(self, clock: Clock, look: Callable[[float], float | None]) -> None:
        self._clock = clock
        self._look = look
        self._handle: asyncio.TimerHandle | None = None
        self._at = 0.0

    def by(self, at: float) -> None:
        """See that ``look`` is called by then."""
        if self._handle is not None:
            if self._at <= at:
                return
            self._handle.cancel()
        self._at = at
        delay = max(0.0, at - self._clock.monotonic())
        self._handle = asyncio.get_running_loop().call_later(delay, self._fire)

    def cancel(self) -> None:
        """Look no more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self) -> None:
        self._handle = None
        now = self._clock.monotonic()
        following = self._look(now)
        if following is not None:
            # Never at once again: what is overdue is being dealt with.
            self.by(max(following, now + _SHORTEST))
