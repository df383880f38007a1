"""The Broker: everything that Tidework asks of its store, by role.

Each method is one atomic step (one Lua script on Redis) unless it says otherwise. Two
implementations pass the same contract suite: broker/redis and testing/memory.
Every method raises BrokerUnavailableError when the store cannot be reached and
BrokerRefusedError when it cannot serve; what else it raises is said at the method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from tidework.broker.acts import Acts
from tidework.broker.answers import (
    CancelAnswer,
    CordonAnswer,
    OnceAnswer,
    PurgeAnswer,
    ReplayAnswer,
    UncordonAnswer,
    UpkeepReply,
)
from tidework.broker.cron_acts import CronActs
from tidework.broker.documents import AcceptedDocument, RejectedDocument
from tidework.broker.job_acts import JobActs
from tidework.model.backlog import (
    EVERY_JOB,
    ErrorGroup,
    JobFilter,
    JobPage,
    JobRecord,
    Presence,
    QueueLoad,
    QueueStats,
    StacksAnswer,
)
from tidework.model.durability import Durability
from tidework.model.fire import (
    CronRecord,
    FireAnswer,
    FireRequest,
    Verdict,
)
from tidework.model.identity import QueueName
from tidework.model.job import Enqueued, Job, JobState
from tidework.model.lease import (
    CordonedWorker,
    ExchangeReply,
    ExchangeRequest,
    Lease,
    RenewReply,
)
from tidework.model.progress import Key, ProgressNote
from tidework.model.scaled import Scaled, ScalingRecord
from tidework.model.statistics import ALL_TASKS, Series, Step, TaskStatistics

KEEP_TASKS = timedelta(days=1)
"""A task that was not announced for so long is forgotten when another worker announces its own."""


class Store(Protocol):
    """What every role needs: an open queue, and a look at it."""

    async def open_queue(self, queue: QueueName) -> None:
        """Make the queue known and check its layout. Raises LayoutError."""

    async def get_job(self, queue: QueueName, job_id: str) -> JobRecord | None:
        """One job, or None."""

    async def stats(self, queue: QueueName) -> QueueStats:
        """Lengths and counters."""

    async def close(self) -> None:
        """Give back connections. The broker can be used again afterwards."""


class Producer(JobActs, Store, Protocol):
    """What programs and jobs call: put jobs in, look at them, act on them; sync and async alike."""

    async def enqueue(self, queue: QueueName, jobs: Sequence[Job]) -> tuple[Enqueued, ...]:
        """Insert jobs; one whose id is known or whose unique key is held is left alone.

        All jobs of the call are inserted in one step. Raises BrokerFullError, EnvelopeError,
        UniqueConflictError (then none is inserted), NotDurableError.
        """

    async def cancel(self, queue: QueueName, job_id: str) -> CancelAnswer:
        """Cancel a waiting job, or request it of a running one."""

    async def forgotten_at(self, queue: QueueName, job_id: str) -> datetime | None:
        """When a job ended that is deleted, if that was less than ten minutes before; else None."""

    async def replay(self, queue: QueueName, job_ids: Sequence[str]) -> tuple[ReplayAnswer, ...]:
        """Make dead letters ready again with all their attempts; a document that never
        validated goes back to the inbox. Raises BrokerFullError."""

    async def purge(self, queue: QueueName, job_ids: Sequence[str]) -> tuple[PurgeAnswer, ...]:
        """Delete ended jobs before their retention is over."""

    async def list_jobs(
        self,
        queue: QueueName,
        state: JobState,
        within: JobFilter = EVERY_JOB,
        *,
        cursor: str | None = None,
        limit: int = 100,
    ) -> JobPage:
        """A page of ids: waiting jobs in the order in which they run, running ones by the end of
        their lease, ended ones newest first. While jobs come and go between two pages, one may
        be seen twice; none that stays is left out. Raises ConfigurationError for a filter that
        the state does not serve.
        """

    async def list_errors(self, queue: QueueName, *, limit: int = 20) -> tuple[ErrorGroup, ...]:
        """Dead letters grouped by the fingerprint of their error, the most frequent first."""

    async def once_begin(self, queue: QueueName, lease: Lease, key: str) -> OnceAnswer:
        """May the job do the block of ``key``? If it is FIRST, it is at it for as long as its lease
        stands, or until ``once_end``. Raises BrokerFullError, NotDurableError."""

    async def once_end(
        self, queue: QueueName, lease: Lease, key: str, *, ttl: timedelta | None
    ) -> bool:
        """The block is done, for ``ttl``; None: it is not, and anybody may begin it.

        False if another job took over, since the lease was lost. Raises NotDurableError.
        """

    async def checkpoints(self, queue: QueueName, job_id: str) -> Mapping[str, Key]:
        """Where the checkpoints of an unfinished or dead job stand: name -> key of the last
        finished item that was told."""

    async def pause(self, queue: QueueName, reason: str) -> bool:
        """Stop claims from the queue until ``resume``; False if it was paused already."""

    async def resume(self, queue: QueueName) -> bool:
        """End a pause; False if there was none."""

    async def tasks(self, queue: QueueName) -> tuple[str, ...]:
        """Tasks that workers of the queue have announced, sorted; kept for KEEP_TASKS at least."""

    async def queues(self) -> tuple[QueueName, ...]:
        """Every queue ever opened, of every namespace, sorted. Not atomic with anything."""


class Documents(Store, Protocol):
    """The inbox: its documents become jobs, by workers or, where there are none, by the leader."""

    async def intake(
        self,
        queue: QueueName,
        accepted: Sequence[AcceptedDocument],
        rejected: Sequence[RejectedDocument],
        *,
        more: int = 0,
        full: bool = False,
    ) -> tuple[bytes, ...]:
        """Turn documents that lie in intake into jobs or dead letters.

        A document that another caller removed first is left alone. Moves up to ``more`` further
        documents from the inbox to intake and returns them, MOST_BYTES or a little more at once;
        of large ones their Beginning.
        Raises BrokerFullError, unless ``full``: then a full server lets them in as well, but moves
        further ones only while less than ``more`` jobs are ready.
        """

    async def stranded(self, queue: QueueName, limit: int, skip: int = 0) -> tuple[bytes, ...]:
        """Documents that lie in intake, oldest first, behind the first ``skip`` of them: being
        validated, or left by a dead worker. In number and bytes bounded as those of ``intake``."""


class Claims(Documents, Protocol):
    """What a worker calls: claim, renew and settle jobs, say what it knows and that it lives."""

    async def wait_for_document(self, queue: QueueName, timeout: timedelta) -> bytes | None:
        """Block until the inbox has a document; move it to intake and return it.

        MARKER means: there is work, exchange now. Of a large one comes its Beginning. On a
        connection of its own: one caller per queue and broker at a time. None when the time is up.
        """

    async def wait_then_exchange(
        self, queue: QueueName, timeout: timedelta, request: ExchangeRequest
    ) -> tuple[bytes | None, ExchangeReply | None]:
        """As ``wait_for_document``, with an exchange of the kind that has ``most_held`` behind it.

        Both are sent at once; the server makes the exchange when the wait is over, also for want
        of a document. So work starts a round trip earlier. No reply to it (or a BrokerError) says
        nothing: it may have been made, or be made yet, and is to be sent by ``exchange`` until it
        is answered.
        """

    async def exchange(self, queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        """Settle and claim. A resend of the same sequence returns the same reply.

        Raises StaleRequestError for a sequence below the last one answered.
        """

    async def renew(
        self, queue: QueueName, incarnation: str, leases: Sequence[tuple[str, str]]
    ) -> RenewReply:
        """Extend leases, given as (job id, lease token), to one full lease from now."""

    async def note_progress(
        self, queue: QueueName, notes: Sequence[ProgressNote]
    ) -> tuple[str, ...]:
        """Keep what running jobs say of themselves; the ids of those whose lease is lost.

        A note that comes behind a later one of its lease changes nothing.
        """

    async def beat(
        self,
        queue: QueueName,
        presence: Presence,
        *,
        ttl: timedelta,
        stacks: StacksAnswer | None = None,
    ) -> int:
        """Store what a worker says of itself; forget workers not seen for ``ttl``.

        stacks: its answer to a request for them.
        Returns the number of the request that waits for an answer, 0 if there is none.
        """

    async def announce(self, queue: QueueName, version: str, tasks: Sequence[str]) -> int:
        """A worker says which tasks its application has, and of which version it is.

        Jobs that were given back for want of a worker that knows their task (``Outcome.
        release_unknown``) are ready again if it does; their number. Not one step if there are
        many of them.
        """

    async def leave(self, queue: QueueName, incarnation: str) -> None:
        """A worker ends in order: forget its presence."""


class Fleet(Store, Protocol):
    """The load and the workers of a queue: for people, and for what scales them."""

    async def gather(self, queue: QueueName, *, horizon: timedelta) -> QueueLoad:
        """The load of the queue for the autoscaler."""

    async def workers(self, queue: QueueName) -> tuple[Presence, ...]:
        """Workers that did not leave, by incarnation; stale ones for some minutes."""

    async def scaling(self, queue: QueueName) -> ScalingRecord:
        """What the autoscaler decided, as far as it is kept."""

    async def cordon(self, queue: QueueName, incarnation: str) -> CordonAnswer | None:
        """Keep a worker from claiming until ``uncordon``, or it ends: what it holds it finishes.

        None if it is not known (any more). The autoscaler does not undo it.
        """

    async def uncordon(self, queue: QueueName, incarnation: str) -> UncordonAnswer:
        """Undo a person's cordon."""

    async def ask_stacks(self, queue: QueueName, incarnation: str) -> int | None:
        """Ask a worker for its stacks; the number of the request, None if it is not known.

        It answers by one of its next beats. A request that waits already serves everybody.
        """

    async def stacks(self, queue: QueueName, incarnation: str) -> StacksAnswer | None:
        """The last answer of a worker; it is kept for a minute."""

    async def drain(
        self, queue: QueueName, term: int, candidates: Sequence[str], count: int, *, ttl: timedelta
    ) -> tuple[CordonedWorker, ...]:
        """Cordon ``count`` of ``candidates`` (incarnations) and nobody else: first those whom a
        person cordoned, then the least busy.

        A cordoned worker claims nothing until ``ttl`` is over or another call leaves it out; what
        a person cordoned stays so.
        Read and cordoned in one step: a worker told to hold no lease gets none afterwards.
        Raises StaleTermError.
        """


class Leadership(Documents, Protocol):
    """Who leads a queue, and what only its leader does besides schedules."""

    async def take_term(self, queue: QueueName) -> int:
        """Raise the queue's term by one and return it: whoever held it can no longer write."""

    async def lead(self, queue: QueueName, holder: str, ttl: timedelta) -> int | None:
        """Become or stay leader of the queue without Kubernetes; the term, or None if another is.

        Becoming leader raises the term.
        """

    async def resign(self, queue: QueueName, holder: str) -> None:
        """Give leadership up if it is ours."""

    async def configure(self, queue: QueueName, term: int, durability: Durability) -> None:
        """Store what every client of the queue has to know of it. Raises StaleTermError.

        Clients that have the queue open already take it over within a minute.
        """

    async def note_scaling(
        self, queue: QueueName, term: int, scaled: Scaled, *, is_step: bool
    ) -> None:
        """Keep what was decided; is_step: among the last decisions too. Raises StaleTermError."""

    async def upkeep(self, queue: QueueName) -> UpkeepReply:
        """Promote due jobs, reap expired leases, prune past retention; each a bounded number."""


class Schedules(Store, Protocol):
    """CronTasks and their fires, as the leader writes them and others read them."""

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
        self,
        queue: QueueName,
        term: int | None,
        uid: str,
        nonce: str,
        job: Job,
        *,
        note: str = "",
    ) -> bool:
        """Enqueue a manual run of a CronTask; False if this nonce ran already.

        note: for the history, who asked for it and why; one line
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


class Statistics(Store, Protocol):
    """What happened to the jobs of a queue over time: for people."""

    async def series(
        self,
        queue: QueueName,
        step: Step,
        *,
        task: str = ALL_TASKS,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Series:
        """What was counted by the minute, hour or day, of one task or of all; from and to the
        point in which ``since`` and ``until`` lie, of those that are kept (``Step.kept``)."""

    async def statistics(self, queue: QueueName, task: str = "") -> tuple[TaskStatistics, ...]:
        """Each task (or one) that was counted in the last hour or day, by name; the sum of all
        comes first. Hour and day are of one moment each, though not of the same."""


class Leader(Fleet, Leadership, Schedules, Protocol):
    """What the scheduler and the operator call."""


class Broker(Producer, Claims, Statistics, Leader, CronActs, Acts, Protocol):
    """All roles."""
