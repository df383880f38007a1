"""Acts of programs and people upon jobs, and what becomes of the documents in an inbox."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st

from tests.property.broker_machine_acts import Player, act, pick
from tests.property.broker_machine_draws import (
    DOCUMENTS,
    FEW,
    JOBS,
    LAPSES,
    PLANS,
    UNIQUES,
    WHICH,
    JobPlan,
)
from tests.property.broker_machine_workers import WorkerActs
from tidework.broker.broker import MARKER, AcceptedDocument, RejectedDocument
from tidework.errors import EnvelopeError
from tidework.model.job import decode_job
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

    @act(1, which=FEW)
    def purge(self, which: list[int]) -> None:
        stored = self.twins.stored
        ended = sorted({*stored.dead, *stored.succeeded, *stored.cancelled})
        ended.append(self.pick_id(0))
        self.twins.ask("purge", [pick(ended, i) for i in which])

    @act(1, again=st.sampled_from((False, False, False, True)))
    def pause_or_resume(self, again: bool) -> None:
        """Whatever it is not; or that again."""
        if ("paused" in self.twins.stored.meta) != again:
            self.twins.ask("resume")
        else:
            self.twins.ask("pause", f"because of {self.new_id('r')}")


class DocumentActs(Player):
    """The inbox, and workers that take documents in."""

    @act(2, raws=st.lists(DOCUMENTS, min_size=1, max_size=3), times=st.integers(1, 2))
    def put_documents(self, raws: list[bytes], times: int) -> None:
        for raw in raws * times:
            if b"%s" in raw:
                self.ids.append(self.new_id("d"))
                self.twins.put_document(raw % self.ids[-1].encode())
            else:
                self.twins.put_document(raw)

    @act(
        3,
        move=st.integers(0, 3),
        first=st.integers(0, 1),
        count=st.integers(0, 3),
        more=st.integers(0, 3),
    )
    def intake(self, move: int, first: int, count: int, more: int) -> None:
        if self.twins.stored.inbox and not move:
            self._wait()
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
            self._wait()
        else:
            self.twins.ask("stranded", limit or 1)

    def _wait(self) -> None:
        self.twins.ask("wait_for_document", timedelta(seconds=5))

    def _read(self, raw: bytes) -> AcceptedDocument | RejectedDocument:
        """As worker/inbox.py does, with ids that an example repeats."""
        fresh = self.new_id("n")
        try:
            job = decode_job(raw, new_id=fresh, now=self.twins.now / 1000)
        except EnvelopeError as error:
            self.ids.append(fresh)
            return RejectedDocument(raw, fresh, JobError("EnvelopeError", str(error)))
        self.ids.append(job.id)
        return AcceptedDocument(raw, job, raw if b'"id"' in raw else job.encode())
