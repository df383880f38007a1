"""Stopping: jobs that run are asked to end, in order, before anybody kills them.

A cancelled job is told at once. One that is at a checkpoint may finish its item: half of its grace
later it is interrupted wherever it is, and at the end of that its child is killed. When the worker
leaves, jobs at a checkpoint are told as well: they end after their item, and go on elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidework.clock import Clock
from tidework.worker import frames
from tidework.worker.held import HeldJob, StopReason
from tidework.worker.places.child_link import ChildLink

CANCEL_GRACE = 5.0
"""Seconds in which a cancelled job has to end."""


class Stopping:
    """Of one pool.

    grace:   seconds for a cancelled job
    look_by: have children looked at by then (monotonic seconds)
    """

    def __init__(self, grace: float, clock: Clock, look_by: Callable[[float], None]) -> None:
        self._grace = grace
        self._clock = clock
        self._look_by = look_by
        self._leaving = False

    def cancel(self, link: ChildLink, job: HeldJob) -> None:
        """Have a job in a child end; the first reason stands."""
        if job.stop_reason is not None:
            return
        now = self._clock.monotonic()
        left = (job.started_at or now) + job.timeout - now
        job.stop_reason, job.stopped_at = StopReason.CANCELLED, now
        job.patience = max(0.0, min(self._grace, left))
        # What was interrupted may have left anything behind: its process ends with it.
        link.spent = not link.places
        link.tell(frames.Cancel(job.number))
        self._look_by(next_look(job))

    def look_at(self, link: ChildLink, job: HeldJob, now: float) -> float:
        """Interrupt a cancelled job if that is due; when to look at it again."""
        if job.stop_reason is StopReason.CANCELLED and not job.insisted and now >= next_look(job):
            job.insisted = True
            link.tell(frames.Stop(job.number))
        return next_look(job)

    def leave(self, links: Iterable[ChildLink]) -> None:
        """The worker drains: jobs at a checkpoint are to be given back, now and later on."""
        self._leaving = True
        for link in links:
            for job in link.jobs.values():
                self.on_said(link, job)

    def on_said(self, link: ChildLink, job: HeldJob) -> None:
        """A job has said something of itself, or may have."""
        if self._leaving and job.positions and not job.asked_back:
            job.asked_back = True
            link.tell(frames.Release(job.number))


def is_over(job: HeldJob, now: float) -> bool:
    """Has a job that was told to end had the time to?"""
    return now >= job.stopped_at + job.patience


def next_look(job: HeldJob) -> float:
    """When something is due for a job that was told to end; monotonic seconds."""
    halves = 2 if job.insisted or job.stop_reason is not StopReason.CANCELLED else 1
    return job.stopped_at + job.patience * halves / 2


def how_it_ended(job: HeldJob, now: float) -> str:
    """In words, of a job that was told to."""
    return f"it ended by itself {max(0.0, now - job.stopped_at):.1f} s after it was told"
