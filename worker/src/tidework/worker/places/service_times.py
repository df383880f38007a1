"""Service times as this worker measured them, and what may be prefetched because of them. Pure.

Only short jobs are worth being claimed before a slot is free: nothing is, until one ran.
"""

from __future__ import annotations

WORTH = 0.05
"""Seconds of work per slot that may be claimed ahead."""
MAX_AHEAD = 100
"""Jobs per slot that may be claimed ahead."""
SHORT = 0.01
"""Seconds: a job expected to run no longer may have others behind it in a child's pipe."""

_WEIGHT = 0.1


class ServiceTimes:
    """Moving averages, per task and over all."""

    def __init__(self) -> None:
        self._by_task: dict[str, float] = {}
        self._mean: float | None = None

    def note(self, task: str, seconds: float) -> None:
        """An attempt ran for ``seconds``."""
        known = self._by_task.get(task, seconds)
        self._by_task[task] = known + _WEIGHT * (seconds - known)
        mean = seconds if self._mean is None else self._mean
        self._mean = mean + _WEIGHT * (seconds - mean)

    def is_short(self, task: str) -> bool:
        """Is a job of the task expected to end soon? Not if none ran so far."""
        return self._by_task.get(task, SHORT + 1) <= SHORT

    def ahead_per_slot(self) -> int:
        """Jobs that may be claimed ahead for each slot: one still where a claim's round trip is
        a notable part of a job."""
        if self._mean is None or self._mean > 2 * WORTH:
            return 0
        return min(MAX_AHEAD, max(1, int(WORTH / max(self._mean, 1e-6))))
