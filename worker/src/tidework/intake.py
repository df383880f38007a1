"""Documents of an inbox become jobs or dead letters: by workers, and by upkeep where there is none.

Whatever does not validate becomes a dead letter with the reason; a document is removed only
together with that. What a dead worker left half-way is found by sweeps: seen twice, it is nobody's.
A full server lets in what was acknowledged, a batch at a time: jobs need more room than documents.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidework.broker.broker import Documents
from tidework.broker.documents import (
    MARKER,
    MAX_DOCUMENT_BYTES,
    MOST_BYTES,
    AcceptedDocument,
    Beginning,
    RejectedDocument,
    length_of,
)
from tidework.clock import Clock
from tidework.errors import BrokerFullError, EnvelopeError
from tidework.logs import UNKNOWN_TASK, queue_fields
from tidework.model.documents.readable_id import readable_id
from tidework.model.identity import QueueName, new_job_id
from tidework.model.job import Job, NewerEnvelopeError, decode_document, decode_newer_job
from tidework.model.outcome import JobError

BATCH = 100
"""Documents that are moved from inbox to intake at once."""
MOST_PAGES = 50
"""Batches of intake that a sweep looks through."""
MOST_FIELDS = 100
"""Unclear fields that are told of a queue."""

logger = logging.getLogger(__name__)


class Taken(NamedTuple):
    """How many documents became jobs, how many of these are due now, and how many were markers."""

    jobs: int = 0
    due: int = 0
    markers: int = 0


class Intake:
    """Takes in the documents of one queue. note_rejected: called for each that is refused"""

    def __init__(
        self,
        broker: Documents,
        queue: QueueName,
        clock: Clock,
        note_rejected: Callable[[], None] = lambda: None,
    ) -> None:
        self._broker = broker
        self._queue = queue
        self._clock = clock
        self._note_rejected = note_rejected
        self._seen: set[bytes] = set()
        self._tried: set[bytes] = set()
        self._told: set[str] = set()

    @property
    def has_seen(self) -> bool:
        """Lay something in intake at the last sweep?"""
        return bool(self._seen)

    async def take_some(self) -> Taken:
        """Take in a batch of what the inbox holds. Raises BrokerError."""
        return await self.take(await self._ask((), ()), further=False)

    async def take_all(self) -> Taken:
        """Take in what the inbox holds; on a full server a batch. Raises BrokerError."""
        return await self.take(await self._ask((), ()))

    async def take(self, documents: Sequence[bytes], *, further: bool = True) -> Taken:
        """Take these in, which lie in intake, and if ``further`` what else the inbox holds.

        On a full server only these. Raises BrokerError.
        """
        jobs = due = markers = 0
        while documents:
            markers += documents.count(MARKER)
            accepted, rejected = self._sort([raw for raw in documents if raw != MARKER])
            if not accepted and not rejected:
                break  # every intake that leaves ready jobs puts a marker into an empty inbox
            documents = await self._ask(accepted, rejected, further=further)
            self._tell_taken(accepted)
            now = self._clock.now().timestamp()
            due += sum((found.job.available_at or 0) <= now for found in accepted)
            jobs += len(accepted)
        return Taken(jobs, due, markers)

    def _tell_taken(self, documents: Sequence[AcceptedDocument]) -> None:
        """These became jobs, or repeat jobs that are known already."""
        if not logger.isEnabledFor(logging.DEBUG):
            return
        for found in documents:
            extra = {
                "event": "document_taken_in",
                **queue_fields(self._queue),
                "job_id": found.job.id,
                "task": found.job.task,
            }
            logger.debug("document taken in", extra=extra)

    async def sweep(self) -> Taken:
        """Take in what lay in intake at the last sweep already. Raises BrokerError."""
        lying: set[bytes] = set()
        tried: set[bytes] = set()
        left: list[bytes] = []
        for page in range(MOST_PAGES):
            found = await self._broker.stranded(self._queue, BATCH, page * BATCH)
            if not found:
                break
            for raw in found:
                name = _digest(raw)
                lying.add(name)
                has_room = len(left) < BATCH and sum(map(len, left)) < MOST_BYTES
                if has_room and name in self._seen and name not in self._tried:
                    tried.add(name)
                    left.append(raw)
        # What was tried, and stays, has its next turn behind all others.
        self._tried = (self._tried | tried) & lying if left else set()
        self._seen = lying
        return await self.take(left)

    async def _ask(
        self,
        accepted: Sequence[AcceptedDocument],
        rejected: Sequence[RejectedDocument],
        *,
        further: bool = True,
    ) -> tuple[bytes, ...]:
        ask, queue, more = self._broker.intake, self._queue, BATCH if further else 0
        try:
            return await ask(queue, accepted, rejected, more=more)
        except BrokerFullError:
            if accepted or rejected:
                more = 0
        return await ask(queue, accepted, rejected, more=more, full=True)

    def _sort(
        self, documents: Sequence[bytes]
    ) -> tuple[list[AcceptedDocument], list[RejectedDocument]]:
        accepted: list[AcceptedDocument] = []
        rejected: list[RejectedDocument] = []
        now = self._clock.now().timestamp()
        for raw in documents:
            found = read_document(raw, now, self._tell)
            if isinstance(found, AcceptedDocument):
                accepted.append(found)
            else:
                rejected.append(found)
                self._note_rejected()
                job_id = found.named or found.id
                extra = queue_fields(self._queue) | {"job_id": job_id, "task": UNKNOWN_TASK}
                logger.error(
                    "document refused",
                    extra={"event": "document_refused", **extra, "error": found.error.message},
                )
        return accepted, rejected

    def _tell(self, job_id: str, field: str, meant: str) -> None:
        """Once for each field: whoever writes it does so in all documents."""
        if field in self._told or len(self._told) >= MOST_FIELDS:
            return
        self._told.add(field)
        logger.warning(
            "a document has the unknown field %r, which has no effect; did you mean %r?",
            field,
            meant,
            extra={
                "event": "unknown_field",
                **queue_fields(self._queue),
                "job_id": job_id,
                "task": UNKNOWN_TASK,
            },
        )


def _digest(raw: bytes) -> bytes:
    length = length_of(raw).to_bytes(8, "big")
    return hashlib.blake2b(raw, digest_size=16, salt=length).digest()


def read_document(
    raw: bytes, now: float, tell: Callable[[str, str, str], None] = lambda *_: None
) -> AcceptedDocument | RejectedDocument:
    """Validate a document from the inbox.

    now:  Unix seconds
    tell: called with the job's id, an unknown field and what it may have been meant to be
    """
    fresh = new_job_id()
    try:
        if isinstance(raw, Beginning):
            raise EnvelopeError(
                f"it has {raw.length} bytes, {MAX_DOCUMENT_BYTES} are the limit; the first "
                f"{len(raw)} are kept. Store the data elsewhere and pass a reference to it"
            )
        found = decode_document(raw, new_id=fresh, now=now)
        job = found.job
        for field, meant in found.unclear.items():
            tell(job.id, field, meant)
        # Kept as it came, unless something had to be added.
        body = raw if found.whole else job.encode()
        return _accept(raw, job, body, named=found.named)
    except NewerEnvelopeError:
        return _read_newer(raw, fresh, now)
    except EnvelopeError as error:
        return _refuse(raw, fresh, error)


def _accept(raw: bytes, job: Job, body: bytes, *, named: bool) -> AcceptedDocument:
    # Many are read before any is stored, and params take several times the room of their text.
    return AcceptedDocument(raw, job._replace(params={}, extra={}), body, named)


def _read_newer(raw: bytes, fresh: str, now: float) -> AcceptedDocument | RejectedDocument:
    """A later version's document becomes a job that waits for a newer worker (admission.py)."""
    try:
        job, body, named = decode_newer_job(raw, new_id=fresh, now=now)
    except EnvelopeError as error:
        return _refuse(raw, fresh, error)
    return AcceptedDocument(raw, job, body, named)


def _refuse(raw: bytes, fresh: str, error: EnvelopeError) -> RejectedDocument:
    reason = JobError("EnvelopeError", str(error), cause="invalid")
    return RejectedDocument(raw, fresh, reason, readable_id(raw))
