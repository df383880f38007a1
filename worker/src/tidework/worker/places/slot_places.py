"""Slots as places: which waiting job goes into which slot, and when one has run too long.

Jobs go to idle slots first, the one used last before others: its child is warm. Short ones also
go ahead of their turn into a child that runs a short one, so that it finds its next job without
a round trip. A job that was lost before is never put behind or before another in a pipe.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from tidework.clock import Clock
from tidework.worker.held import HeldJob, JobSource, Line, StopReason
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.places import (
    AHEAD_IN_CHILD,
    PATIENCE,
    START_LOOK,
    START_PATIENCE,
    Lives,
)
from tidework.worker.places.service_times import ServiceTimes
from tidework.worker.places.slot import Recycling, Slot
from tidework.worker.places.stopping import Stopping, is_over
from tidework.worker.places.turns import Turns, any_job, give_back

logger = logging.getLogger(__name__)


class SlotPlaces:
    """Places of a worker with slots.

    stopping: what cancelled jobs are told
    look_by:  have overdue jobs looked at by then (monotonic seconds)
    lives:    starts and ends children
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        sources: Sequence[JobSource],
        recycling: Recycling,
        stopping: Stopping,
        clock: Clock,
        look_by: Callable[[float], None],
        lives: Lives,
    ) -> None:
        self.turns = Turns(sources, Line.COMMON)
        self.times = ServiceTimes()
        self._slots = slots
        self._recycling = recycling
        self._stopping = stopping
        self._clock = clock
        self._look_by = look_by
        self._lives = lives
        self._idle: dict[int, Slot] = {}

    @property
    def busy(self) -> int:
        # Each link is looked at once: the loop may change it meanwhile.
        return sum(1 for slot in self._slots if (link := slot.link) is not None and link.jobs)

    def idle(self) -> int:
        return len(self._idle)

    def running(self, source: JobSource) -> int:
        links = [slot.link for slot in self._slots if slot.link is not None and slot.link.jobs]
        return sum(1 for link in links if link.first.source is source)

    def ahead(self) -> tuple[int, int]:
        per_slot = self.times.ahead_per_slot()
        if not per_slot:
            return 0, 0
        now = self._clock.monotonic()
        quick = in_pipes = 0
        for slot in self._slots:
            if slot.link is not None:
                quick += _is_quick(slot.link, now)
                in_pipes += max(0, len(slot.link.jobs) - 1)
        most = quick * per_slot
        return max(0, most - in_pipes - self.turns.count()), most

    def run(self) -> None:
        self.turns.look()
        for slot in reversed(list(self._idle.values())):
            if not self._feed(slot):
                return
        for slot in self._slots:
            if slot.link is not None and slot.link.jobs:
                self._feed_ahead(slot.link)

    def on_reports(self, link: ChildLink) -> None:
        if link.worn:
            give_back(link.take_back())
        slot = self._slots[link.slot]
        if slot.link is not link or link.killed_at is not None:
            return
        if link.jobs:
            self._feed_ahead(link)
            if link.first.started_at is None:  # it should have begun
                self._look_by(self._clock.monotonic() + START_LOOK)
        elif not self._lives.recycle(slot, link):
            self._idle[slot.index] = slot
            self._feed(slot)

    def take_out(self, slot: Slot) -> None:
        self._idle.pop(slot.index, None)

    def forget(self, link: ChildLink) -> None:
        """Nothing to do: every child here has a slot."""

    def note_memory(self, free: float) -> None:
        """Nothing to do: no child is started beside the slots."""

    def renew(self) -> None:
        for slot in self._slots:
            if slot.link is not None and slot.link.is_free:
                self._lives.recycle(slot, slot.link)

    def recycle_idle(self) -> None:
        for slot in list(self._idle.values()):
            if slot.link is not None:
                self._lives.recycle(slot, slot.link)

    def stop(self, link: ChildLink, job: HeldJob, stop_reason: StopReason) -> None:
        if stop_reason is StopReason.CANCELLED:
            self._stopping.cancel(link, job)
            return
        job.stop_reason = stop_reason  # its child may be on its way out for another reason
        link.kill(stop_reason, job, self._clock.monotonic())

    def look(self, link: ChildLink, now: float) -> float | None:
        if not link.jobs:
            return None
        job = link.first
        if job.stop_reason is StopReason.CANCELLED:
            return self._look_at_cancelled(link, job, now)
        if job.started_at is None:
            if now >= job.sent_at + START_PATIENCE:
                link.kill(StopReason.BROKEN, None, now)  # stopped, or stuck in what a job left
                return None
            if now < job.sent_at + START_LOOK:
                return job.sent_at + START_LOOK
            link.ask_for(job)
            return job.sent_at + START_PATIENCE
        deadline = job.started_at + job.timeout
        if now >= deadline:
            link.read()  # it may have ended while we were not looking
            if job.number in link.jobs:
                link.kill(StopReason.TIMEOUT, job, now)
            return None
        if len(link.jobs) > 1:
            if now < job.started_at + PATIENCE:
                return min(deadline, job.started_at + PATIENCE)
            give_back(link.take_back())
            self.run()
        return deadline

    def _look_at_cancelled(self, link: ChildLink, job: HeldJob, now: float) -> float | None:
        if not is_over(job, now):
            return self._stopping.look_at(link, job, now)
        link.read()  # as above
        if job.number in link.jobs:
            extra = job.log_fields | {"event": "cancel_overdue", "child": link.pid}
            logger.warning("a job goes on after it was cancelled: it is killed", extra=extra)
            link.kill(StopReason.CANCELLED, job, now)
        return None

    def _feed_ahead(self, link: ChildLink) -> None:
        """Send short jobs into a child ahead of their turn, once half of its pipe is empty."""
        if self._idle or 2 * (len(link.jobs) - 1) > AHEAD_IN_CHILD:
            return
        if self.turns.first() is None or not self._takes_ahead(link):
            return
        room = min(AHEAD_IN_CHILD + 1 - len(link.jobs), self._recycling.room(link))
        jobs = self.turns.take(room, self._may_share_pipe)
        if jobs:
            now = self._clock.monotonic()
            link.send(jobs, now)
            self._look_by(now + PATIENCE)

    def _feed(self, slot: Slot) -> bool:
        """Send a waiting job into the slot's empty child. False if none waits."""
        if slot.link is None or not (jobs := self.turns.take(1, any_job)):
            return False
        del self._idle[slot.index]
        now = self._clock.monotonic()
        slot.link.send(jobs, now)
        self._look_by(now + START_LOOK)
        self._feed_ahead(slot.link)
        return True

    def _takes_ahead(self, link: ChildLink) -> bool:
        return _is_quick(link, self._clock.monotonic()) and all(
            self._may_share_pipe(job) for job in link.jobs.values()
        )

    def _may_share_pipe(self, job: HeldJob) -> bool:
        return not job.claimed.losses and self.times.is_short(job.task)


def _is_quick(link: ChildLink, now: float) -> bool:
    """Does its job run no longer (so far) than a short one should?"""
    if link.killed_at is not None:
        return False
    if not link.jobs or (began := link.first.started_at) is None:
        return True
    return now < began + PATIENCE
