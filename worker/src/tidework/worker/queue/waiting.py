"""Waiting: held jobs of one queue that are not in a child yet, first come first served.

A job claimed ahead of a free place waits for a moment only: if those before it are slower than
they were, it is given back, for whoever has a place. So is a lost job that waits for a child of its
own; but after a number of times it stays, since releases beyond the queue's cap are counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from math import inf

from tidework.model.lease import ClaimedJob
from tidework.model.outcome import Outcome
from tidework.worker.admission import again_after
from tidework.worker.held import HeldJob, Line

WAIT_AHEAD = 0.5
"""Seconds that a job may wait for a place before it is given back."""
SOON_AGAIN = 5
"""Times that one claimed ahead is given back for no time: somebody has a place for it."""
KEPT_AFTER = 10
"""Times after which a lost job is given back no more."""

_REASON = "no place was free for it in this worker"


class Waiting:
    """Of one consumer. ``lines`` are also taken from by whoever sends jobs into children."""

    def __init__(self) -> None:
        self.lines: tuple[deque[HeldJob], ...] = tuple(deque() for _ in Line)

    def add(self, job: HeldJob) -> None:
        """To the end of its line."""
        self.lines[job.line].append(job)

    def put_back(self, jobs: Sequence[HeldJob]) -> None:
        """Before the others; the first of them comes first."""
        for job in reversed(jobs):
            self.lines[job.line].appendleft(job)

    def remove(self, job: HeldJob) -> bool:
        """False if it does not wait here."""
        line = self.lines[job.line]
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
        return self._take([job for line in late for job in line if _late_at(job) <= now])

    def take_of(self, claimed: Sequence[ClaimedJob]) -> list[HeldJob]:
        """Take out those of these that may be given back."""
        named = {id(found) for found in claimed}
        jobs = [job for line in self.lines for job in line if id(job.claimed) in named]
        return self._take([job for job in jobs if _late_at(job) < inf])

    def _take(self, jobs: list[HeldJob]) -> list[HeldJob]:
        for job in jobs:
            self.lines[job.line].remove(job)
        return jobs

    def late_at(self) -> float:
        """When the first has waited too long, inf if none will."""
        # Of those that are not kept the first of a line has waited longest.
        waits = [map(_late_at, line) for line in self.lines]
        return min(next((at for at in line if at < inf), inf) for line in waits)


def outcome_of_late(job: HeldJob) -> Outcome:
    """Of a job that found no place.

    One claimed ahead may be claimed again at once, but does not go through all workers of a fleet
    that have no place. A lost one would be the next to be claimed here, and the next again.
    """
    before = job.claimed.releases
    if job.line is Line.COMMON:
        before -= SOON_AGAIN
    return Outcome.release(timedelta(0) if before < 0 else again_after(before), _REASON)


def _late_at(job: HeldJob) -> float:
    is_kept = job.line is Line.SOLITARY and job.claimed.releases >= KEPT_AFTER
    return inf if is_kept else job.claimed_at + WAIT_AHEAD
