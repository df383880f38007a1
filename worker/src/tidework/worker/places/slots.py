"""Slots: places for one job at a time, each with a child process that is replaced when it ends;
and beside them the child for async jobs, with solitary ones for those that were lost before.

A child is replaced between two jobs (recycling) or after its death; what a dead one leaves is
told to the jobs' sources: the Outcome of the job that had started, and the others back.
The pool never waits: reports of the children and of the template drive it, and one timer for
whatever has to be looked at next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence

from tidework.clock import Clock
from tidework.loop import Loop
from tidework.model.outcome import Outcome, OutcomeKind
from tidework.worker import frames, process
from tidework.worker.held import HeldJob, JobSource, Verdict
from tidework.worker.places.aftermath import settle_dead
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.claims import Claims, Places
from tidework.worker.places.dispatch import (
    PATIENCE,
    START_LOOK,
    Dispatch,
    Recycling,
    Slot,
    give_back,
)
from tidework.worker.places.failing import Failing
from tidework.worker.places.loop_places import LoopPlaces
from tidework.worker.places.nursery import Nursery
from tidework.worker.places.overdue import RETIRE_PATIENCE, Overdue
from tidework.worker.places.service_times import ServiceTimes
from tidework.worker.places.start_pause import start_pause
from tidework.worker.places.stopping import CANCEL_GRACE, Stopping, how_it_ended
from tidework.worker.places.timer import Timer
from tidework.worker.places.verdicts import outcome_of_stopped
from tidework.worker.template.link import Orders

logger = logging.getLogger(__name__)


class SlotPool:
    """All slots of the worker.

    async_slots:   places for async jobs
    cancel_grace:  seconds in which a cancelled job has to end
    on_child_gone: called when a child has ended, for whoever looks after what it leaves
    """

    def __init__(
        self,
        count: int,
        orders: Orders,
        recycling: Recycling,
        clock: Clock,
        *,
        async_slots: int = 0,
        cancel_grace: float = CANCEL_GRACE,
        on_child_gone: Callable[[], None] = lambda: None,
    ) -> None:
        self.slots = [Slot(index) for index in range(count)]
        self._times = ServiceTimes()
        self._timer = Timer(clock, self._look)
        self.sources: list[JobSource] = []
        self.dispatch = Dispatch(
            self.slots, self.sources, self._times, recycling, clock, self._timer.by
        )
        self.stopping = Stopping(cancel_grace, clock, self._timer.by)
        self.loops = LoopPlaces(
            async_slots,
            Slot(count, async_slots),
            self.sources,
            self.stopping,
            clock,
            self._timer.by,
            self._order_solitary,
        )
        places: list[Places] = [self.dispatch]
        if async_slots:
            places.append(self.loops)
        self.claims = Claims(places)
        self._orders = orders
        self._overdue = Overdue(self.loops, self.stopping, orders.kill, self.run)
        self._recycling = recycling
        self._clock = clock
        self._on_child_gone = on_child_gone
        self._links: dict[int, ChildLink] = {}
        self._nursery = Nursery(orders, self, self._links, clock, self._timer.by)
        self._failing = Failing(clock)
        self._at_rest: list[Loop] = []
        self._gone = asyncio.Event()

    def add_source(self, source: JobSource) -> None:
        """Serve this source as well."""
        self.sources.append(source)
        self.claims.add_source(source)

    def run(self) -> None:
        """Send waiting jobs into children."""
        self.dispatch.run()
        if self.loops.count:
            self.loops.run()
        if self._at_rest and self.busy:
            for loop in self._at_rest:
                loop.nudge()
            self._at_rest.clear()

    def rest_until_job(self, loop: Loop) -> bool:
        """False if a job is in a child. Else ``loop`` is nudged when the next one comes."""
        if self.busy:
            return False
        if loop not in self._at_rest:
            self._at_rest.append(loop)
        return True

    def open(self) -> None:
        """The template is ready: give every slot a child."""
        self._nursery.is_open = True
        for slot in self._with_children():
            self._nursery.fill(slot)
        self.run()

    def close(self) -> None:
        """Have all children end, killed if a job is in them; no new ones come."""
        self._nursery.is_open = False
        self.kill_running(Verdict.HANDED_BACK)
        for link in list(self._links.values()):
            if not link.jobs and link.retired_at is None:
                self._retire(link)

    def _with_children(self) -> list[Slot]:
        return [*self.slots, self.loops.slot] if self.loops.count else self.slots

    def _slot_of(self, link: ChildLink) -> Slot:
        return self.loops.slot if link.places else self.slots[link.slot]

    def links(self) -> list[ChildLink]:
        """All children that have not ended."""
        return list(self._links.values())

    async def wait_empty(self) -> None:
        """Wait until every child has ended."""
        while self._links:
            self._gone.clear()
            await self._gone.wait()

    @property
    def busy(self) -> int:
        """Slots and places with a job in them."""
        # Also asked from the thread of the probes: each link is looked at once.
        slots = sum(1 for slot in self.slots if (link := slot.link) is not None and link.jobs)
        return slots + self.loops.busy

    def has_child(self, pid: int) -> bool:
        """Is it one of our children that has not ended?"""
        return any(link.pid == pid for link in self._links.values())

    def unreaped_since(self) -> float | None:
        """When the oldest verdict was passed on a child that has not ended; monotonic seconds."""
        return min(
            (link.killed_at for link in self._links.values() if link.killed_at is not None),
            default=None,
        )

    def stop_job(self, job: HeldJob, verdict: Verdict) -> bool:
        """Stop a job that is in a child. True: it had not started and is the caller's again.

        Else it is told, or its child killed, and its source hears of it when it has ended.
        """
        link = next((link for link in self._links.values() if job in link.jobs.values()), None)
        if link is None:
            return False
        taken = link.take_back() if job.started_at is None or not link.places else []
        ours = job in taken
        give_back([other for other in taken if other is not job])
        if not ours and link.places:
            self.loops.stop(link, job, verdict)
        elif not ours and verdict is Verdict.CANCELLED:
            self.stopping.cancel(link, job)
        elif not ours:
            job.verdict = verdict  # its child may be on its way out for another reason
            link.kill(verdict, job, self._clock.monotonic())
        self.run()
        # If nothing is left in it, its child has nothing to report that would free the slot.
        self.on_reports(link)
        return ours

    def take_back_unstarted(self) -> None:
        """Give every job back to its source that is in a child and did not start."""
        for link in self.links():
            self._take_back(link)

    def _take_back(self, link: ChildLink) -> None:
        give_back(link.take_back())
        self._retire_spent(link)

    def kill_running(self, verdict: Verdict) -> None:
        """Kill every child with a job in it."""
        now = self._clock.monotonic()
        for link in self._links.values():
            if link.jobs:
                link.kill(verdict, link.first, now)

    def _order_solitary(self) -> ChildLink | None:
        return self._nursery.order(self.loops.slot, solitary=True)

    def _on_answered(self, key: int) -> None:
        self._nursery.note_answered(key)
        if self.loops.solitary.turns.first() is not None:
            self.loops.feed()

    def on_child_started(self, key: int, pid: int, pidfd: int | None) -> None:
        """Of TemplateEvents."""
        self._links[key].on_start(pid, pidfd)
        self._on_answered(key)

    def on_child_refused(self, key: int, reason: str) -> None:
        """Of TemplateEvents."""
        link = self._links[key]
        logger.error("no new process: %s; it is tried again", reason, extra={"slot": link.slot})
        self._child_gone(link, None)

    def on_child_ended(self, pid: int, code: int | None) -> None:
        """Of TemplateEvents."""
        link = next((link for link in self._links.values() if link.pid == pid), None)
        if link is not None:
            self._child_gone(link, code)

    def renew(self) -> None:
        """The application was loaded anew: what has begun ends in its child, and no more begins
        in one of before."""
        for link in self.links():
            link.outdated = True
            self._take_back(link)
        for slot in self.slots if self._nursery.is_open else ():
            if slot.link is not None and slot.link.is_free:
                self._recycle(slot, slot.link)
        self.recycle_idle()

    def on_template_ended(self, keys: Collection[int]) -> None:
        """Its children (by key) die with a template; whichever it did not report is looked for."""
        for link in [link for link in self.links() if link.key in keys]:
            link.force()
            try:
                code = None if link.pid is None else process.reap_leader(link.pid)
            except ChildProcessError:
                self._child_gone(link, None)  # the template reaped it and could not say so
            else:
                if code is not None or link.pid is None:
                    self._child_gone(link, code)

    def _child_gone(self, link: ChildLink, code: int | None) -> None:
        slot = self._slot_of(link)
        if slot.link is link:
            slot.link = None
            self.dispatch.take_out(slot)
        self.loops.forget(link)
        link.read_last()
        link.close()
        del self._links[link.key]
        self._on_answered(link.key)
        is_told = link.retired_at is None and self._nursery.is_open
        settle_dead(link, code, self._clock.monotonic(), is_told=is_told)
        self._gone.set()
        self._on_child_gone()
        if slot.link is None and not link.solitary:
            self._replace(slot, link)
        self.run()

    def _replace(self, slot: Slot, dead: ChildLink) -> None:
        slot.unready = 0 if dead.ready else slot.unready + 1
        if not slot.unready:
            self._nursery.fill(slot)
            return
        pause = start_pause(slot.unready)
        asyncio.get_running_loop().call_later(pause, self._nursery.fill, slot)

    def _retire_spent(self, link: ChildLink) -> None:
        """A solitary child ends with its job, also if that was taken back."""
        if link.solitary and not link.jobs and link.killed_at is None and link.retired_at is None:
            self._retire(link)

    def _retire(self, link: ChildLink) -> None:
        now = self._clock.monotonic()
        slot = self._slot_of(link)
        if slot.link is link:
            self.dispatch.take_out(slot)
            slot.link = None
        link.retire(now)
        self._timer.by(now + RETIRE_PATIENCE)

    def on_started(self, link: ChildLink, job: HeldJob) -> None:
        """Of ChildEvents."""
        wait = min(PATIENCE, job.timeout) if len(link.jobs) > 1 else job.timeout
        self._timer.by((job.started_at or 0.0) + wait)

    def on_said(self, link: ChildLink, job: HeldJob) -> None:
        """Of ChildEvents."""
        self.stopping.on_said(link, job)
        job.source.notes.note(job)

    def on_ended(self, link: ChildLink, job: HeldJob, ended: frames.Ended) -> None:
        """Of ChildEvents."""
        outcome: Outcome | None = ended.outcome
        if job.verdict is not None and ended.outcome.kind is OutcomeKind.CANCELLED:
            how = how_it_ended(job, self._clock.monotonic())
            outcome = outcome_of_stopped(job, job.verdict, how)
        else:
            times = self.loops.times if link.places else self._times
            times.note(job.task, ended.seconds)
            if link.failed or ended.outcome.kind is not OutcomeKind.COMPLETE:
                self._failing.note(link, ended)
        if outcome is None:
            job.source.forget(job)
        else:
            job.source.settle(job, outcome, ended.seconds)

    def on_missing(self, link: ChildLink, jobs: Sequence[HeldJob]) -> None:
        """Of ChildEvents."""
        extra = {"slot": link.slot, "child": link.pid, "jobs": ", ".join(job.id for job in jobs)}
        logger.warning("%s: they go elsewhere", link.worn, extra=extra)
        give_back(jobs)

    def on_reports(self, link: ChildLink) -> None:
        """Of ChildEvents."""
        slot = self._slot_of(link)
        if link.worn:
            if link.places:
                self._recycle_loop(link)  # first: what comes back must not go into it again
            give_back(link.take_back())
        if link.places:
            self._on_loop_reports(link)
        elif slot.link is not link or link.killed_at is not None:
            return
        elif link.jobs:
            self.dispatch.feed_ahead(link)
            if link.first.started_at is None:  # it should have begun
                self._timer.by(self._clock.monotonic() + START_LOOK)
        elif not self._recycle(slot, link):
            self.dispatch.rest(slot)
        places = self.loops if link.places else self.dispatch
        if places.turns.first() is None:
            self.claims.offer()

    def _on_loop_reports(self, link: ChildLink) -> None:
        loops = self.loops
        loops.hear(link)
        self._retire_spent(link)
        if link is loops.successor and link.ready:
            former = loops.take_over()
            if former is not None and not former.jobs and former.killed_at is None:
                self._retire(former)
        if link in loops.leaving and not link.jobs and link.retired_at is None:
            self._retire(link)
        loops.feed()
        self._recycle_loop(link)

    def _recycle_loop(self, link: ChildLink) -> None:
        """Start the successor of a child that has served its time."""
        if link is not self.loops.slot.link or not link.has_served or link.killed_at is not None:
            return
        reason = self._recycling.reason(link) if self.loops.may_have_successor else None
        if reason is not None and (successor := self._nursery.order(self.loops.slot)) is not None:
            extra = {"slot": link.slot, "child": link.pid, "reason": reason}
            logger.info("child recycled", extra=extra)
            self.loops.successor = successor

    def recycle_idle(self) -> None:
        """Replace idle children that use too much memory."""
        for slot in self.dispatch.idle_slots():
            if slot.link is not None:
                self._recycle(slot, slot.link)
        if (loop := self.loops.slot.link) is not None:
            self._recycle_loop(loop)

    def _recycle(self, slot: Slot, link: ChildLink) -> bool:
        reason = self._recycling.reason(link) if link.has_served else None
        if reason is None:
            return False
        extra = {"slot": slot.index, "child": link.pid, "reason": reason}
        logger.info("child recycled", extra=extra)
        self._retire(link)
        self._nursery.fill(slot)
        return True

    def _look(self, now: float) -> float | None:
        due = [self._overdue.look_at(link, now) for link in list(self._links.values())]
        return min((at for at in due if at is not None), default=None)
