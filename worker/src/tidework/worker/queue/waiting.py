"""Waiting: held jobs of one queue that are not in a child yet, by mode, first come first served.

A job claimed ahead of a free place waits for a moment only: if those before it are slower than
they were, it is given back, for whoever has a place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import inf

from tidework.model.lease import ClaimedJob
from tidework.worker.held import HeldJob, Mode
from tidework.worker.queue.modes import Modes

WAIT_AHEAD = 0.5
"""Seconds that a job claimed ahead may wait for a place before it is given back."""


class Waiting:
    """Of one consumer. ``lines`` are also taken from by whoever sends jobs into children."""

    def __init__(self, modes: Modes) -> None:
        self.lines: tuple[deque[HeldJob], ...] = tuple(deque() for _ in Mode)
        self._modes = modes

    def add(self, job: HeldJob) -> None:
        """To the end of its line."""
        self.lines[job.mode].append(job)

    def put_back(self, jobs: Sequence[HeldJob]) -> None:
        """Before the others; the first of them comes first."""
        for job in reversed(jobs):
            self.lines[job.mode].appendleft(job)

    def remove(self, job: HeldJob) -> bool:
        """False if it does not wait here."""
        line = self.lines[job.mode]
        if job not in line:
            return False
        line.remove(job)
        return True

    def clear(self) -> list[HeldJob]:
        """Take all out."""
        found = [job for line in self.lines for job in line]
        for line in self.lines:
            line.clear()
        return found

    def take_late(self, now: float) -> list[HeldJob]:
        """Take out what waited too long (monotonic seconds)."""
        # The first of a line has waited longest.
        late = [line for line in self.lines if line and line[0].claimed_at + WAIT_AHEAD <= now]
        return self._take([job for line in late for job in line if self._late_at(job) <= now])

    def take_of(self, claimed: Sequence[ClaimedJob]) -> list[HeldJob]:
        """Take out those of these that may be given back."""
        named = {id(found) for found in claimed}
        jobs = [job for line in self.lines for job in line if id(job.claimed) in named]
        return self._take([job for job in jobs if self._late_at(job) < inf])

    def _take(self, jobs: list[HeldJob]) -> list[HeldJob]:
        for job in jobs:
            self.lines[job.mode].remove(job)
        return jobs

    def late_at(self) -> float:
        """When the first has waited too long, inf if none will."""
        # Of those that are not kept the first of a line has waited longest.
        waits = [map(self._late_at, line) for line in self.lines]
        return min(next((at for at in line if at < inf), inf) for line in waits)

    def _late_at(self, job: HeldJob) -> float:
        return inf if self._modes.keeps(job.claimed) else job.claimed_at + WAIT_AHEAD
