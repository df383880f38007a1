"""The inbox of one queue: documents that any program may have put there become jobs.

While the consumer is starved, one blocked command waits for a document or for the marker that
says that there is work, with an exchange behind it (ahead.py). While it is not, documents are
looked for once in a while. Whatever does not validate becomes a dead letter with the reason; a
document is removed only together with that. What a dead worker left half-way is found by sweeps:
seen twice, it is nobody's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from tidework.broker.broker import MARKER, AcceptedDocument, Broker, RejectedDocument
from tidework.clock import Clock
from tidework.errors import BrokerError, EnvelopeError
from tidework.loop import Loop, shortened
from tidework.model.identity import new_job_id
from tidework.model.job import NewerEnvelopeError, decode_job, decode_newer_job
from tidework.model.outcome import JobError
from tidework.worker.ahead import Ahead
from tidework.worker.backoff import Backoff
from tidework.worker.consumer import Consumer
from tidework.worker.journal import Journal

BATCH = 100
"""Documents that are moved from inbox to intake at once."""


class Inbox:
    """Takes in the documents of the consumer's queue.

    lease: of the queue's jobs; sweeps and blocked waits take a third of it
    """

    def __init__(
        self, consumer: Consumer, broker: Broker, journal: Journal, clock: Clock, lease: timedelta
    ) -> None:
        self._consumer = consumer
        self._broker = broker
        self._journal = journal
        self._clock = clock
        self._ahead = Ahead(consumer, broker, journal, clock, lease)
        self._patience = lease / 3
        self._often = min(timedelta(seconds=1), self._patience)
        self._seldom = False
        self._backoffs = (Backoff(), Backoff())
        self._seen: frozenset[bytes] = frozenset()
        self._sweep_at = 0.0
        self.watch = Loop(f"inbox of {consumer.queue}", self._watch)
        self.sweep = Loop(f"sweep of {consumer.queue}", self._sweep)
        consumer.on_documents = self._on_documents

    async def _watch(self) -> timedelta:
        if not self._ahead.is_unanswered:
            await self._consumer.starved.wait()
        failures = self._backoffs[0].failures
        wait = await self._tolerate(0, self._wait)
        if self._backoffs[0].failures > failures:
            # Nobody can wake us: a full server refuses to let us wait, and still gives out jobs.
            self._consumer.on_work()
        return wait

    async def _wait(self) -> timedelta:
        await self._ahead.close()
        if not self._consumer.starved.is_set():
            return timedelta(0)
        document, exchanged = await self._ahead.wait(shortened(self._patience))
        if document is not None and document != MARKER:
            await self._take((document,))
        elif not exchanged:
            # Without a document too: a marker may have died with another worker.
            self._consumer.on_work(woken=document is not None)
        return timedelta(0)

    async def end(self) -> None:
        """Once nothing is waited for any more: find out what was claimed in the last moment."""
        while self._ahead.is_unanswered:
            wait = await self._tolerate(0, self._close)
            await asyncio.sleep(wait.total_seconds())

    async def _close(self) -> timedelta:
        await self._ahead.close(claims=False)
        return timedelta(0)

    async def _sweep(self) -> timedelta:
        return await self._tolerate(1, self._look_around)

    async def _look_around(self) -> timedelta:
        consumer = self._consumer
        now = self._clock.monotonic()
        if consumer.documents_seen and not consumer.starved.is_set() and not consumer.draining:
            await self._take(await self._broker.intake(consumer.queue, (), (), more=BATCH))
        if now >= self._sweep_at and (consumer.documents_seen or self._seen or not self._sweep_at):
            self._sweep_at = now + self._patience.total_seconds()
            consumer.documents_seen = False
            lying = await self._broker.stranded(consumer.queue, BATCH)
            await self._take(tuple(raw for raw in lying if raw in self._seen))
            self._seen = frozenset(lying)
        self._seldom = not consumer.documents_seen
        return self._patience if self._seldom else self._often

    def _on_documents(self) -> None:
        if self._seldom:
            self._seldom = False
            self.sweep.nudge()

    async def _tolerate(self, which: int, step: Callable[[], Awaitable[timedelta]]) -> timedelta:
        """Redis may be away or full: documents stay where they are, the step is done again."""
        try:
            wait = await step()
        except BrokerError as error:
            self._journal.note_redis_error(error, "inbox")
            return self._backoffs[which].next()
        self._backoffs[which].reset()
        return wait

    async def _take(self, documents: Sequence[bytes]) -> None:
        """Take these in, and what else the inbox holds."""
        markers = taken = 0
        while documents:
            markers += documents.count(MARKER)
            accepted, rejected = self._sort([raw for raw in documents if raw != MARKER])
            if not accepted and not rejected:
                break  # every intake that leaves ready jobs puts a marker into an empty inbox
            documents = await self._broker.intake(
                self._consumer.queue, accepted, rejected, more=BATCH
            )
            taken += len(accepted)
            self._journal.tell_taken_in(accepted)
        if markers:
            # An exchange removes one of them, the next sweep the others.
            self._consumer.documents_seen = True
        if taken or markers:
            self._consumer.on_work(woken=markers > 0)

    def _sort(
        self, documents: Sequence[bytes]
    ) -> tuple[list[AcceptedDocument], list[RejectedDocument]]:
        accepted: list[AcceptedDocument] = []
        rejected: list[RejectedDocument] = []
        now = self._clock.now().timestamp()
        for raw in documents:
            found = read_document(raw, now)
            if isinstance(found, AcceptedDocument):
                accepted.append(found)
            else:
                rejected.append(found)
                self._journal.note_rejected(found.id, found.error)
        return accepted, rejected


def read_document(raw: bytes, now: float) -> AcceptedDocument | RejectedDocument:
    """Validate a document from the inbox. ``now``: Unix seconds."""
    fresh = new_job_id()
    try:
        job = decode_job(raw, new_id=fresh, now=now)
        envelope = json.loads(raw)
        # Kept as it came, unless something had to be added.
        whole = envelope.get("id") is not None and envelope.get("created_at") is not None
        return AcceptedDocument(raw, job, raw if whole else job.encode())
    except NewerEnvelopeError:
        return _read_newer(raw, fresh, now)
    except EnvelopeError as error:
        return _refuse(raw, fresh, error)


def _read_newer(raw: bytes, fresh: str, now: float) -> AcceptedDocument | RejectedDocument:
    """A later version's document becomes a job that waits for a newer worker (admission.py)."""
    try:
        job, body = decode_newer_job(raw, new_id=fresh, now=now)
    except EnvelopeError as error:
        return _refuse(raw, fresh, error)
    return AcceptedDocument(raw, job, body)


def _refuse(raw: bytes, fresh: str, error: EnvelopeError) -> RejectedDocument:
    reason = JobError("EnvelopeError", str(error), cause="invalid")
    return RejectedDocument(raw, fresh, reason)
