"""Time as a parameter: whoever needs it takes a Clock, so that tests own it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Wall clock and monotonic clock of one machine."""

    def now(self) -> datetime:
        """Wall time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean something."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that moves only when told to."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, by: timedelta) -> None:
        """Move both clocks forward by ``by``."""
        self._now += by
        self._monotonic += by.total_seconds()

    def jump(self, by: timedelta) -> None:
        """Move the wall clock alone, as an operator or NTP would."""
        self._now += by


def to_ms(moment: datetime) -> int:
    """Milliseconds since the Unix epoch."""
    return round(moment.timestamp() * 1000)


def from_ms(ms: float) -> datetime:
    """The aware UTC moment that lies ``ms`` milliseconds after the Unix epoch."""
    return datetime.fromtimestamp(ms / 1000, UTC)
