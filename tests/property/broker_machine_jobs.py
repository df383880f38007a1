"""Acts of programs and people upon jobs, and what becomes of the documents in an inbox."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.property.broker_machine_acts import act, pick
from tests.property.broker_machine_draws import (
    DOCUMENTS,
    FEW,
    JOBS,
    LAPSES,
    MOSTLY,
    PLANS,
    TASKS,
    UNIQUES,
    WHICH,
    JobPlan,
)
from tests.property.broker_machine_workers import WorkerActs
from tidework.broker.documents import MARKER, AcceptedDocument, RejectedDocument
from tidework.errors import EnvelopeError
from tidework.model.documents.readable_id import readable_id
from tidework.model.job import Job, decode_document
from tidework.model.outcome import JobError
from tidework.model.unique import OnConflict, Unique


class JobActs(WorkerActs):
    """What programs and people do with jobs."""

    @act(3, plans=JOBS)
    def enqueue(self, plans: list[JobPlan]) -> None:
        self.twins.ask("enqueue", [self.job(plan) for plan in plans])

    @act(3, plans=JOBS, unique=UNIQUES)
    def enqueue_unique(self, plans: list[JobPlan], unique: Unique) -> None:
        self.enqueue([replace(plan, unique=plan.unique or unique) for plan in plans])

    @act(1, plans=st.lists(PLANS, min_size=7, max_size=7))
    def rush(self, plans: list[JobPlan]) -> None:
        """So many at once that the tenth claim has a choice."""
        self.enqueue([replace(plan, unique=None, known=None) for plan in plans])
        self.work(0, 5, [])
        self.work(1, 5, [])

    @act(3, plans=st.tuples(PLANS, PLANS, PLANS), unique=UNIQUES, other=UNIQUES, ms=LAPSES)
    def contend(self, plans: tuple[JobPlan, ...], unique: Unique, other: Unique, ms: int) -> None:
        """One job after the other takes the key, the first of them runs."""
        takers = (unique, *(replace(u, on_conflict=OnConflict.REPLACE) for u in (other, unique)))
        for plan, taker in zip(plans, takers, strict=True):
            self.enqueue([replace(plan, unique=replace(taker, key=unique.key))])
            if taker is unique:
                self.work(0, 3, [])
                self.twins.let_pass(ms)

    @act(2, which=WHICH)
    def cancel(self, which: int) -> None:
        running = sorted(self.twins.stored.leases)
        self.twins.ask("cancel", pick([*running[:2], *self.ids[::-1], "nobody"], which))

    @act(2, which=FEW)
    def replay(self, which: list[int]) -> None:
        dead = [*sorted(self.twins.stored.dead, reverse=True), self.pick_id(0)]
        self.twins.ask("replay", [pick(dead, i) for i in which])

    @act(2, which=FEW, again=st.booleans())
    def purge(self, which: list[int], again: bool) -> None:
        """Gone, but not forgotten."""
        stored = self.twins.stored
        ended = sorted({*stored.dead, *stored.succeeded, *stored.cancelled})
        ended.append(self.pick_id(0))
        ids = [pick(ended, i) for i in which]
        self.twins.ask("purge", ids)
        if again:
            self.twins.ask("enqueue", [Job(name, TASKS[0], {}) for name in ids])

    @act(2, plans=JOBS)
    def pause_for_a_while(self, plans: list[JobPlan]) -> None:
        """Nobody is woken until it is over."""
        self.twins.ask("pause", f"because of {self.new_id('r')}")
        self.enqueue(plans)
        self.work(0, 1, [])
        self.twins.ask("resume")

    @act(1, other=MOSTLY)
    def pause_or_resume(self, other: bool) -> None:
        """Whatever it is not; or that again."""
        if ("paused" in self.twins.stored.meta) == other:
            self.twins.ask("resume")
        else:
            self.twins.ask("pause", f"because of {self.new_id('r')}")


class DocumentActs(WorkerActs):
    """The inbox, and workers that take documents in."""

    @act(
        3,
        raws=st.lists(DOCUMENTS, min_size=1, max_size=2),
        times=st.integers(1, 2),
        count=st.integers(1, 3),
        again=st.booleans(),
    )
    def deliver(self, raws: list[bytes], times: int, count: int, again: bool) -> None:
        """Documents come and some of them are taken in, maybe by two copies of a request."""
        self.put_documents(raws, times)
        self.intake(4, 0, count, 1)
        if again:
            self.twins.send(self.twins.sent[-1])

    @act(1, raws=st.lists(DOCUMENTS, min_size=1, max_size=3), times=st.integers(1, 2))
    def put_documents(self, raws: list[bytes], times: int) -> None:
        for raw in raws * times:
            if b"%s" in raw:
                self.ids.append(self.new_id("d"))
                self.twins.put_document(raw % self.ids[-1].encode())
            else:
                self.twins.put_document(raw)

    @act(
        2,
        move=st.integers(0, 3),
        first=st.integers(0, 1),
        count=st.integers(0, 3),
        more=st.integers(0, 3),
    )
    def intake(self, move: int, first: int, count: int, more: int) -> None:
        if self.twins.stored.inbox and not move:
            self.wait()
        elif self.twins.stored.inbox:
            self.twins.ask("intake", [], [], more=move)
        lying = [raw for raw in self.twins.stored.intake if raw != MARKER]
        accepted, rejected = [], []
        for raw in lying[first : first + count]:
            found = self._read(raw)
            if isinstance(found, AcceptedDocument):
                accepted.append(found)
            else:
                rejected.append(found)
        self.twins.ask("intake", accepted, rejected, more=more)

    @act(1, limit=st.integers(0, 3))
    def look_around(self, limit: int) -> None:
        """Wait for a document, if there is one, or look at those that are stranded."""
        if limit == 0 and self.twins.stored.inbox:
            self.wait()
        else:
            self.twins.ask("stranded", limit or 1)

    def _read(self, raw: bytes) -> AcceptedDocument | RejectedDocument:
        """As worker/queue/inbox.py does, with ids that an example repeats."""
        fresh = self.new_id("n")
        try:
            found = decode_document(raw, new_id=fresh, now=self.twins.now / 1000)
        except EnvelopeError as error:
            named = readable_id(raw)
            self.ids += [fresh, *([named] if named else [])]
            return RejectedDocument(raw, fresh, JobError("EnvelopeError", str(error)), named)
        job = found.job
        self.ids.append(job.id)
        return AcceptedDocument(raw, job, raw if found.whole else job.encode(), found.named)
