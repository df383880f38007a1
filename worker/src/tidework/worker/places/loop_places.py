"""Places on an event loop, which the async jobs of a worker share in one child.

A child that is to be recycled gets a successor: it takes jobs until that is ready, and ends when
its last job has. A job is stopped by the child, which cancels it; one that has not ended a second
later has its child killed. A loop that does not answer is blocked: it gets no jobs, and those that
wait in its pipe are taken back.
Jobs that were lost before take places as well, but run in children of their own (solitary.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from tidework.clock import Clock
from tidework.worker import frames
from tidework.worker.held import HeldJob, JobSource, Line, StopReason
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.places import (
    AHEAD_IN_CHILD,
    PATIENCE,
    START_LOOK,
    START_PATIENCE,
    Lives,
)
from tidework.worker.places.service_times import MAX_AHEAD, ServiceTimes
from tidework.worker.places.slot import Recycling, Slot, note_recycled
from tidework.worker.places.solitary import SolitaryChildren
from tidework.worker.places.start_pause import start_pause
from tidework.worker.places.stopping import Stopping, is_over, next_look
from tidework.worker.places.turns import Turns, any_job, give_back

STOP_PATIENCE = 1.0
"""Seconds in which a job has to end that was told to stop, unless somebody cancelled it."""
QUIET = 1.0
"""Seconds after which a loop with jobs that says nothing is asked whether it turns."""
ANSWER_WITHIN = 1.0
"""Seconds in which it has to answer."""
TOLD_JOBS = 10
"""Jobs that a message names at most."""

logger = logging.getLogger(__name__)


class LoopPlaces:
    """Places of a worker with an event loop.

    slot:     with the child that takes jobs
    stopping: what cancelled jobs are told
    look_by:  have the child looked at by then (monotonic seconds)
    lives:    starts and ends children
    """

    def __init__(
        self,
        slot: Slot,
        sources: Sequence[JobSource],
        recycling: Recycling,
        stopping: Stopping,
        clock: Clock,
        look_by: Callable[[float], None],
        lives: Lives,
    ) -> None:
        self.count = slot.places
        self.slot = slot
        self.turns = Turns(sources, Line.COMMON)
        self.times = ServiceTimes()
        self.successor: ChildLink | None = None
        self.leaving: list[ChildLink] = []
        self.solitary = SolitaryChildren(self.count, sources, clock, self._order_solitary, self.run)
        self._recycling = recycling
        self._stopping = stopping
        self._clock = clock
        self._look_by = look_by
        self._lives = lives
        self._pipe = max(AHEAD_IN_CHILD, self.count // 2)
        self._unready = 0
        self._paused_until = 0.0

    def links(self) -> list[ChildLink]:
        """The children that share jobs."""
        current = self.slot.link
        return self.leaving if current is None else [current, *self.leaving]

    @property
    def busy(self) -> int:
        return min(self.count, self._jobs())

    def _jobs(self) -> int:
        return sum(len(link.jobs) for link in self.links()) + self.solitary.jobs

    def _takes_jobs(self, link: ChildLink | None) -> bool:
        if link is None or not link.ready or link.killed_at is not None or link.outdated:
            return False
        if link.worn and self.successor is not None:
            return False
        return not link.blocked and not link.slow

    def idle(self) -> int:
        if not self._takes_jobs(self.slot.link):
            return 0
        return max(0, self.count - self._jobs() - self.solitary.turns.count())

    def running(self, source: JobSource) -> int:
        links = [*self.links(), *self.solitary.links]
        jobs = [job for link in links for job in link.jobs.values()]
        return min(self.count, sum(1 for job in jobs if job.source is source))

    def ahead(self) -> tuple[int, int]:
        if not self._takes_jobs(self.slot.link):
            return 0, 0
        most = min(self.count * self.times.ahead_per_slot(), 2 * max(MAX_AHEAD, self.count))
        in_pipe = max(0, self._jobs() - self.count)
        return max(0, most - in_pipe - self.turns.count()), most

    def run(self) -> None:
        self.turns.look()
        self.solitary.turns.look()
        self.feed()

    def feed(self) -> None:
        """Send waiting jobs: to free places, and short ones ahead once half the pipe is empty."""
        needs_solitary = self.solitary.is_needed
        if needs_solitary:
            self.solitary.feed(self.count - self._jobs())
        link = self.slot.link
        if link is None or not self._takes_jobs(link):
            return
        room = self.count - self._jobs()
        jobs = self.turns.take(room, any_job) if room > 0 else []
        # A successor's own places are all free: what is sent ahead would start at once. So would it
        # where solitary children have some of the places.
        is_only = not self.leaving and not needs_solitary
        if (room <= 0 or len(jobs) == room) and is_only:
            in_pipe = max(0, -room)
            if 2 * in_pipe <= self._pipe:
                jobs += self.turns.take(self._pipe - in_pipe, self._is_short)
        if jobs:
            now = self._clock.monotonic()
            link.send(jobs, now)
            self._look_by(now + PATIENCE)

    def _is_short(self, job: HeldJob) -> bool:
        return self.times.is_short(job.task)

    def on_reports(self, link: ChildLink) -> None:
        if link.worn:
            self._recycle(link)  # first: what comes back must not go into it again
            give_back(link.take_back())
        self._hear(link)
        self._lives.retire_if_done(link)
        if link is self.successor and link.ready:
            former = self.take_over()
            if former is not None and not former.jobs and former.killed_at is None:
                self._lives.retire(former)
        if link in self.leaving and not link.jobs and link.retired_at is None:
            self._lives.retire(link)
        self.feed()
        self._recycle(link)

    def _order_solitary(self) -> ChildLink | None:
        return self._lives.order(self.slot, solitary=True)

    def _recycle(self, link: ChildLink) -> None:
        """Start the successor of a child that has served its time."""
        if link is not self.slot.link or not link.has_served or link.killed_at is not None:
            return
        # After one that ended before it was ready not at once.
        if self.successor is not None or self._clock.monotonic() < self._paused_until:
            return
        reason = self._recycling.reason(link)
        if reason is not None and (successor := self._lives.order(self.slot)) is not None:
            note_recycled(link, reason)
            self.successor = successor

    def renew(self) -> None:
        self.recycle_idle()

    def recycle_idle(self) -> None:
        """Of Places. Also if jobs run: the child ends when they have."""
        if self.slot.link is not None:
            self._recycle(self.slot.link)

    def note_memory(self, free: float) -> None:
        self.solitary.note_memory(free)

    def take_out(self, slot: Slot) -> None:
        """Nothing to do: nothing is kept here of slots that take jobs."""

    def take_over(self) -> ChildLink | None:
        """The successor is ready. Returns its predecessor, which gets no more jobs."""
        former = self.slot.link
        self._unready = 0
        self.slot.link, self.successor = self.successor, None
        if former is not None:
            self.leaving.append(former)
        return former

    def forget(self, link: ChildLink) -> None:
        self.solitary.forget(link)
        if link in self.leaving:
            self.leaving.remove(link)
        if link is self.successor:
            self.successor = None
            self._paused_until = self._clock.monotonic() + start_pause(self._unready)
            self._unready += 1
        if self.slot.link is None and self.successor is not None:
            self.take_over()

    def stop(self, link: ChildLink, job: HeldJob, stop_reason: StopReason) -> None:
        if stop_reason is StopReason.CANCELLED:
            self._stopping.cancel(link, job)
            return
        if job.stop_reason is not None:
            return
        now = self._clock.monotonic()
        job.stop_reason, job.stopped_at, job.patience = stop_reason, now, STOP_PATIENCE
        link.tell(frames.Stop(job.number))
        self._look_by(now + STOP_PATIENCE)

    def look(self, link: ChildLink, now: float) -> float | None:
        if not link.jobs:
            return None
        if any(_is_due(job, now) for job in link.jobs.values()) or self._is_silent(link, now):
            link.read()  # it may have said something while we were not looking
        self._ask(link, now)
        for job in link.jobs.values():
            if job.started_at is None and now >= job.sent_at + START_LOOK:
                link.ask_for(job)
        for job in list(link.jobs.values()):
            if job.stop_reason is not None:
                self._stopping.look_at(link, job, now)
            if link.killed_at is None and _is_due(job, now):
                self._judge(link, job, now)
        if self._keeps_waiting(link, now):
            taken = link.take_back()
            link.slow = link.slow or bool(taken)
            give_back(taken)
            self.run()
        times = [_next_look(job, now) for job in link.jobs.values()]
        return min([now + QUIET, *times])

    def _keeps_waiting(self, link: ChildLink, now: float) -> bool:
        """Does a job wait in it that others could have begun? A solitary one has its own."""
        if link.solitary or link.killed_at is not None:
            return False
        return any(_waits(job, now) for job in link.jobs.values())

    def _judge(self, link: ChildLink, job: HeldJob, now: float) -> None:
        if job.started_at is None:
            link.kill(StopReason.BLOCKED if link.blocked else StopReason.BROKEN, None, now)
        elif job.stop_reason is None:
            self.stop(link, job, StopReason.TIMEOUT)
        elif link.heard_at < job.stopped_at:
            logger.error("%s it is killed", _blocked(link, now), extra=_told(link))
            link.kill(StopReason.BLOCKED, None, now)
        else:
            extra = job.log_fields | {"event": "cancel_overdue", "child": link.pid}
            logger.error("a job goes on after it was cancelled: its child is killed", extra=extra)
            link.kill(job.stop_reason, job, now)

    def _is_silent(self, link: ChildLink, now: float) -> bool:
        return now >= link.heard_at + QUIET

    def _hear(self, link: ChildLink) -> None:
        """It said something."""
        link.slow = False
        if link.blocked:
            link.blocked = False
            extra = {"event": "loop_free", "child": link.pid}
            logger.warning("the event loop turns again", extra=extra)

    def _ask(self, link: ChildLink, now: float) -> None:
        """Find out whether the loop turns."""
        if link.heard_at >= link.asked_at:
            if self._is_silent(link, now):
                link.asked_at = now
                link.ping()
        elif now >= link.asked_at + ANSWER_WITHIN and not link.blocked:
            link.blocked = True
            logger.warning("%s see which task it is", _blocked(link, now), extra=_told(link))


def _blocked(link: ChildLink, now: float) -> str:
    return (
        f"the event loop for async tasks has not turned for {now - link.heard_at:.1f} s: a "
        "job blocks it, by a call that waits (time.sleep, a synchronous client) or by computing; "
        "await instead, use asyncio.to_thread, or make the task a plain 'def';"
    )


def _told(link: ChildLink) -> dict[str, object]:
    started = [job for job in link.jobs.values() if job.started_at is not None]
    jobs = [f"{job.task} {job.id}" for job in started[:TOLD_JOBS]]
    return {
        "event": "loop_blocked",
        "child": link.pid,
        "running": len(started),
        "jobs": ", ".join(jobs),
    }


def _due_at(job: HeldJob) -> float:
    if job.started_at is None:
        return job.sent_at + START_PATIENCE
    if job.stop_reason is None:
        return job.started_at + job.timeout
    return next_look(job)


def _is_due(job: HeldJob, now: float) -> bool:
    return is_over(job, now) if job.stop_reason is not None else now >= _due_at(job)


def _waits(job: HeldJob, now: float) -> bool:
    return job.started_at is None and now >= job.sent_at + PATIENCE


def _next_look(job: HeldJob, now: float) -> float:
    if job.started_at is None and now < job.sent_at + PATIENCE:
        return job.sent_at + PATIENCE
    return _due_at(job)
