"""Backoff: how long to wait after the nth failure in a row, capped, with jitter."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import random as system_random


class Backoff:
    """Doubling delays from ``first`` to ``most``, each drawn from its upper half.

    The jitter keeps workers that lost Redis in the same moment from coming back in one.
    """

    def __init__(
        self,
        first: timedelta = timedelta(milliseconds=100),
        most: timedelta = timedelta(seconds=5),
        random: Callable[[], float] = system_random,
    ) -> None:
        self._first = first
        self._most = most
        self._random = random
        self.failures = 0

    def next(self) -> timedelta:
        """The wait after one more failure."""
        growth: int = 2 ** min(self.failures, 30)
        whole = min(self._most, self._first * growth)
        self.failures += 1
        return whole * (0.5 + self._random() / 2)

    def reset(self) -> None:
        """It worked."""
        self.failures = 0
