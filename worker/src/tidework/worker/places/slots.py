"""The pool: a child process for every slot, or one with an event loop for all places, and what
stops, ends or replaces them.

The places say which job goes into which child. A child is replaced between two jobs (recycling) or
after its death; what a dead one leaves is told to the jobs' sources: the Outcome of the job that
had started, and the others back.
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
from tidework.worker.held import HeldJob, JobSource, StopReason
from tidework.worker.places.aftermath import settle_dead
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.claims import Claims
from tidework.worker.places.failing import Failing
from tidework.worker.places.loop_places import LoopPlaces
from tidework.worker.places.nursery import Nursery
from tidework.worker.places.outcomes import outcome_of_stopped
from tidework.worker.places.overdue import RETIRE_PATIENCE, Overdue
from tidework.worker.places.places import PATIENCE, Places
from tidework.worker.places.slot import Recycling, Slot, note_recycled
from tidework.worker.places.slot_places import SlotPlaces
from tidework.worker.places.start_pause import start_pause
from tidework.worker.places.stopping import CANCEL_GRACE, Stopping, how_it_ended
from tidework.worker.places.timer import Timer
from tidework.worker.places.turns import give_back
from tidework.worker.template.link import Orders

logger = logging.getLogger(__name__)


class SlotPool:
    """The children of the worker; implements ChildEvents, Lives and the keeper's ChildPool.

    count:         places
    has_loop:      they are on one event loop, for async jobs; else slots
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
        has_loop: bool = False,
        cancel_grace: float = CANCEL_GRACE,
        on_child_gone: Callable[[], None] = lambda: None,
    ) -> None:
        self.has_loop = has_loop
        self.slots = [Slot(0, count)] if has_loop else [Slot(index) for index in range(count)]
        self._timer = Timer(clock, self._look)
        self.sources: list[JobSource] = []
        self.stopping = Stopping(cancel_grace, clock, self._timer.by)
        look_by, stopping, sources = self._timer.by, self.stopping, self.sources
        self.places: Places
        if has_loop:
            self.places = LoopPlaces(
                self.slots[0], sources, recycling, stopping, clock, look_by, self
            )
        else:
            self.places = SlotPlaces(self.slots, sources, recycling, stopping, clock, look_by, self)
        self.claims = Claims(self.places)
        self._orders = orders
        self._overdue = Overdue(self.places, orders.kill)
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
        self.places.run()
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
        for slot in self.slots:
            self._nursery.fill(slot)
        self.run()

    def close(self) -> None:
        """Have all children end, killed if a job is in them; no new ones come."""
        self._nursery.is_open = False
        self.kill_running(StopReason.WORKER_LEAVES)
        for link in list(self._links.values()):
            if not link.jobs and link.retired_at is None:
                self.retire(link)

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
        """Places with a job in them. Also asked from the thread of the probes."""
        return self.places.busy

    def has_child(self, pid: int) -> bool:
        """Is it one of our children that has not ended?"""
        return any(link.pid == pid for link in self._links.values())

    def unreaped_since(self) -> float | None:
        """When the first child was killed that has not ended; monotonic seconds."""
        return min(
            (link.killed_at for link in self._links.values() if link.killed_at is not None),
            default=None,
        )

    def stop_job(self, job: HeldJob, stop_reason: StopReason) -> bool:
        """Stop a job that is in a child. True: it had not started and is the caller's again.

        Else it is told, or its child killed, and its source hears of it when it has ended.
        """
        link = next((link for link in self._links.values() if job in link.jobs.values()), None)
        if link is None:
            return False
        taken = link.take_back() if job.started_at is None or not link.places else []
        ours = job in taken
        give_back([other for other in taken if other is not job])
        if not ours:
            self.places.stop(link, job, stop_reason)
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
        self.retire_if_done(link)

    def kill_running(self, stop_reason: StopReason) -> None:
        """Kill every child with a job in it."""
        now = self._clock.monotonic()
        for link in self._links.values():
            if link.jobs:
                link.kill(stop_reason, link.first, now)

    def order(self, slot: Slot, *, solitary: bool = False) -> ChildLink | None:
        return self._nursery.order(slot, solitary=solitary)

    def _on_answered(self, key: int) -> None:
        self._nursery.note_answered(key)
        if self.has_loop:
            self.places.run()  # lost jobs may wait until another child can be ordered

    def on_child_started(self, key: int, pid: int, pidfd: int | None) -> None:
        self._links[key].on_start(pid, pidfd)
        self._on_answered(key)

    def on_child_refused(self, key: int, reason: str) -> None:
        link = self._links[key]
        extra = {"event": "child_not_started", "slot": link.slot}
        logger.error("no new process: %s; it is tried again", reason, extra=extra)
        self._child_gone(link, None)

    def on_child_ended(self, pid: int, code: int | None) -> None:
        link = next((link for link in self._links.values() if link.pid == pid), None)
        if link is not None:
            self._child_gone(link, code)

    def renew(self) -> None:
        """The application was loaded again: what has begun ends in its child, and no more begins
        in one of before."""
        for link in self.links():
            link.outdated = True
            self._take_back(link)
        self.places.renew()

    def recycle_idle(self) -> None:
        """Replace children that have served their time, between two jobs."""
        self.places.recycle_idle()

    def note_memory(self, free: float) -> None:
        """So many bytes are left before memory gets scarce; negative: it is."""
        self.places.note_memory(free)

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
        slot = self._take_out(link)
        self.places.forget(link)
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

    def retire_if_done(self, link: ChildLink) -> None:
        if link.solitary and not link.jobs and link.killed_at is None and link.retired_at is None:
            self.retire(link)

    def retire(self, link: ChildLink) -> None:
        now = self._clock.monotonic()
        self._take_out(link)
        link.retire(now)
        self._timer.by(now + RETIRE_PATIENCE)

    def _take_out(self, link: ChildLink) -> Slot:
        """It takes no more jobs. Returns the slot that it served."""
        slot = self.slots[link.slot]
        if slot.link is link:
            slot.link = None
            self.places.take_out(slot)
        return slot

    def recycle(self, slot: Slot, link: ChildLink) -> bool:
        reason = self._recycling.reason(link) if link.has_served else None
        if reason is None:
            return False
        note_recycled(link, reason)
        self.retire(link)
        self._nursery.fill(slot)
        return True

    def on_started(self, link: ChildLink, job: HeldJob) -> None:
        wait = min(PATIENCE, job.timeout) if len(link.jobs) > 1 else job.timeout
        self._timer.by((job.started_at or 0.0) + wait)

    def on_said(self, link: ChildLink, job: HeldJob) -> None:
        self.stopping.on_said(link, job)
        job.source.notes.note(job)

    def on_ended(self, link: ChildLink, job: HeldJob, ended: frames.Ended) -> None:
        outcome: Outcome | None = ended.outcome
        if job.stop_reason is not None and ended.outcome.kind is OutcomeKind.CANCELLED:
            how = how_it_ended(job, self._clock.monotonic())
            outcome = outcome_of_stopped(job, job.stop_reason, how)
        else:
            self.places.times.note(job.task, ended.seconds)
            if link.failed or ended.outcome.kind is not OutcomeKind.COMPLETE:
                self._failing.note(link, ended)
        if outcome is None:
            job.source.forget(job)
        else:
            job.source.settle(job, outcome, ended.seconds)

    def on_missing(self, link: ChildLink, jobs: Sequence[HeldJob]) -> None:
        extra = {
            "event": "child_worn",
            "slot": link.slot,
            "child": link.pid,
            "jobs": ", ".join(job.id for job in jobs),
        }
        logger.warning("%s: they go elsewhere", link.worn, extra=extra)
        give_back(jobs)

    def on_reports(self, link: ChildLink) -> None:
        self.places.on_reports(link)
        if self.places.turns.first() is None:
            self.claims.offer()

    def _look(self, now: float) -> float | None:
        due = [self._overdue.look_at(link, now) for link in list(self._links.values())]
        return min((at for at in due if at is not None), default=None)
