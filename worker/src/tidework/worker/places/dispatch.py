"""Dispatch: which waiting job goes into which slot.

Jobs go to idle slots first, the one used last before others: its child is warm. Short ones also
go ahead of their turn into a child that runs a short one, so that it finds its next job without
a round trip. A job that was lost before is never put behind or before another in a pipe.
Sources take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidework.clock import Clock
from tidework.worker.held import HeldJob, JobSource, Mode
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.service_times import ServiceTimes

AHEAD_IN_CHILD = 8
"""Jobs that may lie in a child's pipe behind the one that runs."""
START_PATIENCE = 30.0
"""Seconds in which a child has to start a job, and the template a child."""
MOST_UNREAPED = 16
"""Ended processes that may lie unreaped below a child; each holds a pid of the container's."""
START_LOOK = 1.0
"""Seconds after which a child is asked for a job that it has not begun."""
PATIENCE = 0.1
"""Seconds that a job may run before those behind it are taken back."""


@dataclass(slots=True, eq=False)
class Slot:
    """One place for one job at a time; or where the child for async jobs is.

    places:  of that child, for async jobs; 0 = one job of any kind at a time
    link:    its child, None while there is none
    unready: children that ended before they were ready, in a row
    """

    index: int
    places: int = 0
    link: ChildLink | None = None
    unready: int = 0


@dataclass(frozen=True, slots=True)
class Recycling:
    """A child is replaced after ``jobs`` jobs, of each of its places, or above ``memory`` bytes of
    PSS."""

    jobs: int
    memory: int

    def reason(self, link: ChildLink) -> str | None:
        """Why this child is to be replaced, in words."""
        if link.outdated:
            return "the application was loaded anew"
        if link.worn:
            return link.worn
        if link.spent:
            return "a job was cancelled in it"
        if link.done >= self.jobs * max(1, link.places):
            return f"{link.done} jobs"
        if link.pss > self.memory:
            return f"{link.pss >> 20} MiB"
        if link.unreaped > MOST_UNREAPED:
            return f"{link.unreaped} ended processes that nobody reaped"
        return None

    def room(self, link: ChildLink) -> int:
        """How many jobs more the child may be sent before it is replaced."""
        if link.outdated or link.worn or link.spent or link.pss > self.memory:
            return 0
        return self.jobs - link.done - len(link.jobs)


class Turns:
    """Jobs of one mode that wait, source by source. Who adds some to a line calls ``look``."""

    def __init__(self, sources: Sequence[JobSource], mode: Mode) -> None:
        self._sources = sources
        self._mode = mode
        self._turns: dict[JobSource, None] = {}

    def look(self) -> None:
        """Find the sources with waiting jobs."""
        for source in self._sources:
            if source.lines[self._mode]:
                self._turns.setdefault(source)

    def first(self) -> HeldJob | None:
        """The job whose turn it is."""
        for source in list(self._turns):
            if line := source.lines[self._mode]:
                return line[0]
            del self._turns[source]
        return None

    def take(self, most: int, fits: Callable[[HeldJob], bool]) -> list[HeldJob]:
        """Up to ``most`` that fit, of the source whose turn it is and then of others."""
        taken: list[HeldJob] = []
        while len(taken) < most and (job := self.first()) is not None and fits(job):
            source = job.source
            line = source.lines[self._mode]
            while len(taken) < most and line and fits(line[0]):
                taken.append(line.popleft())
            # The others come first next time.
            del self._turns[source]
            if line:
                self._turns[source] = None
        return taken

    def count(self) -> int:
        """How many wait."""
        return sum(len(source.lines[self._mode]) for source in self._turns)


class Dispatch:
    """Feeds the slots from the sources.

    look_by: have overdue jobs looked at by then (monotonic seconds)
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        sources: Sequence[JobSource],
        times: ServiceTimes,
        recycling: Recycling,
        clock: Clock,
        look_by: Callable[[float], None],
    ) -> None:
        self.turns = Turns(sources, Mode.ALONE)
        self._slots = slots
        self._times = times
        self._recycling = recycling
        self._clock = clock
        self._look_by = look_by
        self._idle: dict[int, Slot] = {}

    def idle(self) -> int:
        """Of Places."""
        return len(self._idle)

    def running(self, source: JobSource) -> int:
        """Of Places."""
        links = [slot.link for slot in self._slots if slot.link is not None and slot.link.jobs]
        return sum(1 for link in links if link.first.source is source)

    def ahead(self) -> tuple[int, int]:
        """Of Places."""
        per_slot = self._times.ahead_per_slot()
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
        """Send waiting jobs into children."""
        self.turns.look()
        for slot in reversed(list(self._idle.values())):
            if not self._feed(slot):
                return
        for slot in self._slots:
            if slot.link is not None and slot.link.jobs:
                self.feed_ahead(slot.link)

    def rest(self, slot: Slot) -> None:
        """The slot's child has nothing in it: give it a job if one waits."""
        self._idle[slot.index] = slot
        self._feed(slot)

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
        if slot.link is None or not (jobs := self.turns.take(1, _any)):
            return False
        del self._idle[slot.index]
        now = self._clock.monotonic()
        slot.link.send(jobs, now)
        self._look_by(now + START_LOOK)
        self.feed_ahead(slot.link)
        return True

    def _takes_ahead(self, link: ChildLink) -> bool:
        return _is_quick(link, self._clock.monotonic()) and all(
            self._may_share_pipe(job) for job in link.jobs.values()
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


def _any(_job: HeldJob) -> bool:
    return True


def _is_quick(link: ChildLink, now: float) -> bool:
    """Does its job run no longer (so far) than a short one should?"""
    if link.killed_at is not None:
        return False
    if not link.jobs or (began := link.first.started_at) is None:
        return True
    return now < began + PATIENCE
