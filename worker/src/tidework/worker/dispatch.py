"""Dispatch: which waiting job goes into which slot, and how many more may be claimed.

Jobs go to idle slots first; short ones also ahead of their turn into a child that runs a short
one, so that it finds its next job without a round trip. A job that was lost before is never put
behind or before another in a pipe. Sources take turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidework.clock import Clock
from tidework.worker.child_link import ChildLink
from tidework.worker.held import HeldJob, JobSource
from tidework.worker.service_times import ServiceTimes

AHEAD_IN_CHILD = 8
"""Jobs that may lie in a child's pipe behind the one that runs."""
START_PATIENCE = 30.0
"""Seconds in which a child has to start a job, and the template a child."""
PATIENCE = 0.1
"""Seconds that a job may run before those behind it are taken back."""


@dataclass(slots=True, eq=False)
class Slot:
    """One place for one job at a time.

    link:    its child, None while there is none
    unready: children that ended before they were ready, in a row
    """

    index: int
    link: ChildLink | None = None
    unready: int = 0


@dataclass(frozen=True, slots=True)
class Recycling:
    """A child is replaced after ``jobs`` jobs or above ``memory`` bytes of PSS."""

    jobs: int
    memory: int

    def reason(self, link: ChildLink) -> str | None:
        """Why this child is to be replaced, in words."""
        if link.done >= self.jobs:
            return f"{link.done} jobs"
        if link.pss > self.memory:
            return f"{link.pss >> 20} MiB"
        return None

    def room(self, link: ChildLink) -> int:
        """How many jobs more the child may be sent before it is replaced."""
        return 0 if link.pss > self.memory else self.jobs - link.done - len(link.jobs)


class Dispatch:
    """Feeds the slots from the sources.

    look_by: have overdue jobs looked at by then (monotonic seconds)
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        times: ServiceTimes,
        recycling: Recycling,
        clock: Clock,
        look_by: Callable[[float], None],
    ) -> None:
        self.sources: list[JobSource] = []
        self._slots = slots
        self._times = times
        self._recycling = recycling
        self._clock = clock
        self._look_by = look_by
        self._idle: dict[int, Slot] = {}
        self._reserved = 0
        self._grants: deque[JobSource] = deque()

    def add_source(self, source: JobSource) -> None:
        """Serve this source as well."""
        self.sources.append(source)
        self._grants.append(source)

    @property
    def has_idle(self) -> bool:
        """Is a slot free that no claim is under way for?"""
        return len(self._idle) > self._reserved

    def reserve(self, source: JobSource) -> int:
        """Idle slots that ``source`` may claim jobs for now; give them back by ``unreserve``.

        Hungry sources that were granted slots longer ago find one left for each.
        """
        longer_ago = 0
        for other in self._grants:
            if other is source:
                break
            longer_ago += other.hungry
        granted = max(0, len(self._idle) - self._reserved - longer_ago)
        if granted:
            self._grants.remove(source)
            self._grants.append(source)
            self._reserved += granted
        return granted

    def unreserve(self, granted: int) -> None:
        """The claim was answered."""
        self._reserved -= granted

    def offer(self) -> None:
        """Tell the sources if a slot is free."""
        if self.has_idle:
            for source in self.sources:
                source.on_capacity()

    def ahead_room(self, source: JobSource) -> int:
        """Jobs that ``source`` may claim beyond free slots: its share, less what it has."""
        per_slot = self._times.ahead_per_slot()
        if not per_slot:
            return 0
        now = self._clock.monotonic()
        links = [slot.link for slot in self._slots if slot.link is not None]
        quick = sum(_is_quick(link, now) for link in links)
        in_pipes = sum(max(0, len(link.jobs) - 1) for link in links)
        share = (quick * per_slot - in_pipes) // len(self.sources)
        return max(0, share - len(source.waiting))

    def run(self) -> None:
        """Send waiting jobs into children."""
        for slot in list(self._idle.values()):
            if not self._feed(slot):
                return
        for slot in self._slots:
            if slot.link is not None and slot.link.jobs:
                self.feed_ahead(slot.link)

    def rest(self, slot: Slot) -> None:
        """The slot's child has nothing in it: give it a job, or tell the sources."""
        self._idle[slot.index] = slot
        if not self._feed(slot):
            self.offer()

    def take_out(self, slot: Slot) -> None:
        """The slot's child takes no more jobs."""
        self._idle.pop(slot.index, None)

    def idle_slots(self) -> list[Slot]:
        """Slots whose child has nothing in it."""
        return list(self._idle.values())

    def feed_ahead(self, link: ChildLink) -> None:
        """Send short jobs into a child ahead of their turn, once half of its pipe is empty."""
        if self._idle or 2 * (len(link.jobs) - 1) > AHEAD_IN_CHILD:
            return
        if not any(source.waiting for source in self.sources) or not self._takes_ahead(link):
            return
        room = min(AHEAD_IN_CHILD + 1 - len(link.jobs), self._recycling.room(link))
        jobs: list[HeldJob] = []
        while len(jobs) < room:
            source = next((s for s in self.sources if s.waiting), None)
            if source is None or not self._may_share_pipe(source.waiting[0]):
                break
            jobs.append(source.waiting.popleft())
        if jobs:
            now = self._clock.monotonic()
            link.send(jobs, now)
            self._look_by(now + PATIENCE)

    def _feed(self, slot: Slot) -> bool:
        """Send a waiting job into the slot's empty child. False if none waits."""
        source = next((s for s in self.sources if s.waiting), None)
        if source is None or slot.link is None:
            return False
        # The others come first next time.
        self.sources.remove(source)
        self.sources.append(source)
        del self._idle[slot.index]
        now = self._clock.monotonic()
        slot.link.send([source.waiting.popleft()], now)
        self._look_by(now + START_PATIENCE)
        self.feed_ahead(slot.link)
        return True

    def _takes_ahead(self, link: ChildLink) -> bool:
        return _is_quick(link, self._clock.monotonic()) and all(
            self._may_share_pipe(job) for job in link.jobs
        )

    def _may_share_pipe(self, job: HeldJob) -> bool:
        return not job.claimed.losses and self._times.is_short(job.task)


def give_back(jobs: Sequence[HeldJob]) -> None:
    """Hand jobs that did not start back to their sources, in order."""
    by_source: dict[JobSource, list[HeldJob]] = {}
    for job in jobs:
        by_source.setdefault(job.source, []).append(job)
    for source, found in by_source.items():
        source.take_back(found)


def _is_quick(link: ChildLink, now: float) -> bool:
    """Does its job run no longer (so far) than a short one should?"""
    if link.killed_at is not None:
        return False
    if not link.jobs or link.jobs[0].started_at is None:
        return True
    return now < link.jobs[0].started_at + PATIENCE
