"""The Broker: everything that Tidework asks of its store.

Each method is one atomic step (one Lua script on Redis) unless it says otherwise. Two
implementations pass the same contract suite: redis.py and memory.py.
Every method raises BrokerUnavailableError when the store cannot be reached and
BrokerRefusedError when it cannot serve; what else it raises is said at the method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from tidework.model.backlog import JobPage, JobRecord, Presence, QueueLoad, QueueStats
from tidework.model.fire import CronRecord, FireAnswer, FireRequest, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import CordonedWorker, ExchangeReply, ExchangeRequest, RenewReply

MARKER = b"!"
"""The one-byte document that only wakes a worker."""


@dataclass(frozen=True, slots=True)
class RejectedDocument:
    """An inbox document that did not validate: it becomes a dead letter under ``id``."""

    raw: bytes
    id: str
    error: bytes


@dataclass(frozen=True, slots=True)
class AcceptedDocument:
    """An inbox document that did validate. ``body`` is what is stored: ``raw``, or with an id."""

    raw: bytes
    job: Job
    body: bytes


@dataclass(frozen=True, slots=True)
class UpkeepReply:
    """Numbers of jobs that one round of upkeep moved; ``next_due`` as in ExchangeReply."""

    promoted: int
    reaped: int
    buried: int
    pruned: int
    next_due: timedelta | None


class CancelAnswer(str):
    """'cancelled', 'requested' (it runs; the worker will stop it), 'finished' or 'unknown'."""

    __slots__ = ()


class Producer(Protocol):
    """What a program needs that puts jobs in and looks at them; sync and async alike."""

    async def open_queue(self, queue: QueueName) -> None:
        """Make the queue known and check its layout. Raises LayoutError."""

    async def enqueue(self, queue: QueueName, jobs: Sequence[Job]) -> tuple[bool, ...]:
        """Insert jobs; False for an id that is already known (idempotent).

        All jobs of the call are inserted in one step. Raises BrokerFullError, EnvelopeError.
        """

    async def cancel(self, queue: QueueName, job_id: str) -> CancelAnswer:
        """Cancel a waiting job, or request it of a running one."""

    async def get_job(self, queue: QueueName, job_id: str) -> JobRecord | None:
        """One job, or None."""

    async def list_jobs(
        self, queue: QueueName, state: JobState, *, cursor: str | None = None, limit: int = 100
    ) -> JobPage:
        """A page of ids: waiting states in the order of their due time, ended ones newest first."""

    async def stats(self, queue: QueueName) -> QueueStats:
        """Lengths and counters."""

    async def queues(self) -> tuple[QueueName, ...]:
        """Every queue ever opened, of every namespace, sorted. Not atomic with anything."""

    async def close(self) -> None:
        """Give back connections. The broker can be used again afterwards."""


class Broker(Producer, Protocol):
    """What workers, the scheduler and the autoscaler need on top."""

    async def wait_for_document(self, queue: QueueName, timeout: timedelta) -> bytes | None:
        """Block until the inbox has a document; move it to intake and return it.

        MARKER means: there is work, exchange now. On a connection of its own: one caller per
        queue and broker at a time. None when the time is up.
        """

    async def intake(
        self,
        queue: QueueName,
        accepted: Sequence[AcceptedDocument],
        rejected: Sequence[RejectedDocument],
        *,
        more: int = 0,
    ) -> tuple[bytes, ...]:
        """Turn documents that lie in intake into jobs or dead letters.

        A document that another caller removed first is left alone. Moves up to ``more`` further
        documents from the inbox to intake and returns them. Raises BrokerFullError.
        """

    async def stranded(self, queue: QueueName, limit: int) -> tuple[bytes, ...]:
        """Documents that lie in intake, oldest first: being validated, or left by a dead worker."""

    async def exchange(self, queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        """Settle and claim. A resend of the same sequence returns the same reply.

        Raises StaleRequestError for a sequence below the last one answered.
        """

    async def renew(
        self, queue: QueueName, incarnation: str, leases: Sequence[tuple[str, str]]
    ) -> RenewReply:
        """Extend leases, given as (job id, lease token), to one full lease from now."""

    async def beat(self, queue: QueueName, presence: Presence, *, ttl: timedelta) -> None:
        """Store what a worker says of itself; forget workers not seen for ``ttl``."""

    async def leave(self, queue: QueueName, incarnation: str) -> None:
        """A worker ends in order: forget its presence."""

    async def workers(self, queue: QueueName) -> tuple[Presence, ...]:
        """Workers seen within the last beat's ttl, by incarnation."""

    async def upkeep(self, queue: QueueName) -> UpkeepReply:
        """Promote due jobs, reap expired leases, prune past retention; each a bounded number."""

    async def gather(self, queue: QueueName, *, horizon: timedelta) -> QueueLoad:
        """The load of the queue for the autoscaler."""

    async def drain(
        self, queue: QueueName, term: int, candidates: Sequence[str], count: int, *, ttl: timedelta
    ) -> tuple[CordonedWorker, ...]:
        """Cordon the ``count`` least busy of ``candidates`` (incarnations) and nobody else.

        A cordoned worker claims nothing until ``ttl`` is over or another call leaves it out.
        Read and cordoned in one step: a worker told to hold no lease gets none afterwards.
        Raises StaleTermError.
        """

    async def take_term(self, queue: QueueName) -> int:
        """Raise the queue's term by one and return it: whoever held it can no longer write."""

    async def lead(self, queue: QueueName, holder: str, ttl: timedelta) -> int | None:
        """Become or stay leader of the queue without Kubernetes; the term, or None if another is.

        Becoming leader raises the term.
        """

    async def resign(self, queue: QueueName, holder: str) -> None:
        """Give leadership up if it is ours."""

    async def admit_cron(
        self, queue: QueueName, term: int, uid: str, fingerprint: str, start: int, *, reset: bool
    ) -> CronRecord:
        """The CronTask's record; a new one, one of another schedule, or ``reset`` starts with
        ``start`` (Unix seconds) as watermark. The watermark never moves back.
        Raises StaleTermError.
        """

    async def decide_fires(
        self, queue: QueueName, term: int, requests: Sequence[FireRequest]
    ) -> tuple[Verdict | FireAnswer, ...]:
        """Write one verdict per fire, in order. A resend of the last fire answers the same.

        Fires are decided in batches, each in one step; after an error the earlier batches stand.

        Raises StaleTermError, BrokerFullError.
        """

    async def run_now(
        self, queue: QueueName, term: int | None, uid: str, nonce: str, job: Job
    ) -> bool:
        """Enqueue a manual run of a CronTask; False if this nonce ran already.

        It ignores the concurrency policy but counts as an active run. With a term (the
        scheduler acting on a document) raises StaleTermError.
        """

    async def put_crontasks(
        self, queue: QueueName, term: int, documents: Mapping[str, bytes]
    ) -> None:
        """Mirror the queue's validated CronTasks (uid -> JSON) and forget the records of all
        others. Raises StaleTermError."""

    async def crontasks(self, queue: QueueName) -> Mapping[str, Any]:
        """The mirrored CronTasks: uid -> document."""

    async def cron_record(self, queue: QueueName, uid: str) -> CronRecord | None:
        """What is known of one CronTask's fires."""
