"""Every error that Tidework raises, in one tree.

Foreign errors are translated at their door (redis in broker/, yaml in manifests) with ``from``.
Expected ends of a job are Outcomes (model/outcome.py), not exceptions.

    TideworkError
    ├── ConfigurationError        settings, command line, files
    │   ├── ManifestError         a TaskQueue or CronTask document: file, line, field
    │   ├── ManifestErrors        all of them at once (manifests/faults.py)
    │   └── AppImportError        the application does not import, or holds no Tidework app
    ├── ScheduleError             a cron expression, an interval or a time zone
    ├── EnvelopeError             a job document that cannot be accepted
    │   └── NewerEnvelopeError    of a later version than this program (model/job.py)
    ├── ParamsError               params that the task's signature refuses
    ├── UnknownTaskError          no task of that name is registered
    ├── SoftTimeout               raised in a running job whose soft timeout is over
    ├── LeaseLostError            the running job is no longer ours to run
    ├── CheckpointError           what a checkpoint iterates does not hold the item it stands at
    ├── JobNotFoundError          no job of that id (never enqueued, or past retention)
    │   └── ResultExpiredError    there was one: retention has taken it, and its result
    ├── ResultError               the awaited job has succeeded, but its result was not kept
    ├── JobFailedError            the awaited job is dead; carries its error
    ├── JobCancelledError         the awaited job was cancelled
    ├── WaitTimeoutError          the awaited job did not end in time
    ├── JobStateError             the job is in a state in which that cannot be done to it
    ├── IdempotencyError          the idempotency key was used for another request
    ├── QueueNotFoundError        nobody has opened a queue of that name
    ├── WorkerNotFoundError       no worker of that name has been seen lately
    ├── NoAnswerError             a worker does not answer a request
    ├── UniqueConflictError       another job holds the unique key, and on_conflict is error
    ├── TooManyListenersError     no more clients can listen to events of this server
    ├── UnauthenticatedError      a request to the API does not say, or prove, who makes it
    ├── ForbiddenError            the caller may not do that, or not in that namespace
    ├── ForeignPageError          a page of another site asks, in the name of who looks at it
    └── BrokerError
        ├── BrokerUnavailableError   Redis does not answer, or cannot serve just now
        ├── BrokerRefusedError       Redis is too old, or refuses the credentials or a right
        ├── BrokerFullError          Redis is out of memory under noeviction
        ├── NotDurableError          stored, but not as durably as its queue asks
        ├── LayoutError              the queue's layout version does not fit this client
        ├── StaleRequestError        a later request of the same worker was already answered
        └── StaleTermError           another leader holds a higher term

    CancelRequested               raised in a running job that is to be cancelled: no error, and no
                                  Exception, so that it passes whatever catches those
"""

from __future__ import annotations

from datetime import datetime, timedelta

from tidework.meant import did_you_mean, listed


class TideworkError(Exception):
    """Root of all errors of Tidework."""


class ConfigurationError(TideworkError):
    """A setting, option or file is wrong; the text says what, where and how to mend it."""


class ManifestError(ConfigurationError):
    """A document is wrong. ``line`` counts from 1; ``field`` is a dotted path."""

    def __init__(self, reason: str, *, file: str, line: int | None = None, field: str = "") -> None:
        self.reason = reason
        self.file = file
        self.line = line
        self.field = field
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {field}: {reason}" if field else f"{place}: {reason}")


class AppImportError(ConfigurationError):
    """The application named by ``--app`` cannot be used.

    is_typo: there is nothing of that name, and something of a name like it
    """

    def __init__(self, text: str, *, is_typo: bool = False) -> None:
        self.is_typo = is_typo
        super().__init__(text)


class ScheduleError(TideworkError):
    """A schedule is refused. ``position`` is the 0-based offset into ``expression``."""

    def __init__(
        self, expression: str, reason: str, *, hint: str = "", position: int | None = None
    ) -> None:
        self.expression = expression
        self.reason = reason
        self.hint = hint
        self.position = position
        where = "" if position is None else f" at position {position}"
        tail = f"; {hint}" if hint else ""
        super().__init__(f"schedule {expression!r}{where}: {reason}{tail}")


class EnvelopeError(TideworkError):
    """A job document is refused. ``field`` names the envelope field, '' the whole document."""

    def __init__(self, reason: str, *, field: str = "") -> None:
        self.reason = reason
        self.field = field
        super().__init__(f"{field}: {reason}" if field else reason)


class ParamsError(TideworkError):
    """The params do not fit the task's signature."""

    def __init__(self, task: str, reason: str) -> None:
        self.task = task
        self.reason = reason
        super().__init__(f"params of task {task!r}: {reason}")


class UnknownTaskError(TideworkError):
    """No task of this name is registered in the application, whose tasks are ``known``."""

    def __init__(self, task: object, known: tuple[str, ...] = ()) -> None:
        self.task = task
        self.known = known
        names = sorted(known)
        meant = did_you_mean(task, names) if isinstance(task, str) else ""
        super().__init__(
            f"unknown task {task!r}{meant or ';'} this application has: {listed(names)}"
        )


class SoftTimeout(TideworkError):  # noqa: N818 - a moment has come, which is no fault
    """The soft timeout of the running job is over: end in order, the hard one kills.

    An Exception, unlike what ends a program: ``finally``, ``except SoftTimeout`` and the cleanup of
    libraries treat it as any failure. Whoever catches Exception and goes on does so until the hard
    timeout. ``seconds``: that the attempt had.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"the soft timeout of {seconds:g} s is over")


class CancelRequested(BaseException):
    """Somebody has the running job cancelled: end in order, what goes on is killed soon.

    Like asyncio.CancelledError, which an async handler gets in its place, no Exception: ``finally``
    and ``with`` do their part, ``except Exception`` does not catch it. Whatever the handler does
    then, its job is cancelled.
    """

    def __init__(self) -> None:
        super().__init__("the job was cancelled while it ran")


class CheckpointError(TideworkError):
    """A checkpoint cannot go on where it stood: what it iterates does not hold that item (any
    more). Nothing was skipped, and the position is kept."""

    def __init__(self, where: str, position: object) -> None:
        self.position = position
        super().__init__(
            f"{where} cannot go on after {position!r}: the iterated items do not contain it. "
            "Make the same items come in the same order in each attempt, or give a function that "
            "takes the position and returns the items after it. To start from the beginning, "
            "enqueue a new job"
        )


class LeaseLostError(TideworkError):
    """The lease of the running job is lost: its worker was out of touch, and another one has the
    job or will get it. Nothing that this attempt returns counts."""

    def __init__(self, job_id: str, queue: str) -> None:
        self.job_id = job_id
        self.queue = queue
        super().__init__(
            f"the lease of job {job_id} is not known in queue {queue}: it was lost, or "
            "TIDEWORK_REDIS_URL of this process is not the Redis of its worker"
        )


class JobNotFoundError(TideworkError):
    """No job of this id is known: never enqueued in this queue, or past retention."""

    def __init__(self, job_id: str, queue: str, reason: str = "") -> None:
        self.job_id = job_id
        self.queue = queue
        super().__init__(
            reason
            or f"job {job_id!r} is not known in queue {queue!r}: never enqueued there, or ended "
            "and deleted since. A queue keeps the newest 10,000 ended jobs of each state "
            "(retention.count of its TaskQueue), those that succeeded or were cancelled for an "
            "hour (succeededSeconds) and dead letters for 7 days (deadSeconds)"
        )


class ResultExpiredError(JobNotFoundError):
    """The job was enqueued, and has ended since: retention has taken it, and its result.

    ended_at: if that is still known
    """

    def __init__(self, job_id: str, queue: str, ended_at: datetime | None = None) -> None:
        self.ended_at = ended_at
        if ended_at is None:
            which = (
                "it ended longer ago than retention keeps (succeededSeconds, deadSeconds of the "
                "queue: an hour and a week by default), or was more than retention.count (10,000 "
                "by default) ended jobs of its state ago"
            )
        else:
            which = (
                f"it ended at {ended_at.isoformat(timespec='seconds')}, and the queue keeps only "
                "the last retention.count (10,000 by default) ended jobs of a state, or keeps "
                "them for less than ten minutes, or somebody purged it"
            )
        reason = f"job {job_id} of queue {queue} is forgotten, and its result with it: {which}"
        JobNotFoundError.__init__(self, job_id, queue, reason)


class ResultError(TideworkError):
    """The job has succeeded, and its result cannot be had: it was not kept, or does not fit the
    task's annotation."""

    def __init__(self, job_id: str, reason: str) -> None:
        self.job_id = job_id
        self.reason = reason
        super().__init__(f"job {job_id} has succeeded, without a result: {reason}")


class JobFailedError(TideworkError):
    """The job is a dead letter. ``kind``, ``reason`` and ``trace`` are those of its error."""

    def __init__(self, job_id: str, kind: str, reason: str, trace: str = "") -> None:
        self.job_id = job_id
        self.kind = kind
        self.reason = reason
        self.trace = trace
        super().__init__(f"job {job_id} is dead: {kind}: {reason}")


class JobCancelledError(TideworkError):
    """The job was cancelled."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(f"job {job_id} was cancelled")


class WaitTimeoutError(TideworkError):
    """The job did not end within the time given to wait for it. It goes on."""

    def __init__(self, job_id: str, seconds: float, state: str) -> None:
        self.job_id = job_id
        self.seconds = seconds
        self.state = state
        super().__init__(f"job {job_id} is still {state} after {seconds:g} s")


class JobStateError(TideworkError):
    """That cannot be done to the job as it is now: ``reason``."""

    def __init__(self, job_id: str, reason: str) -> None:
        self.job_id = job_id
        self.reason = reason
        super().__init__(f"job {job_id}: {reason}")


class IdempotencyError(TideworkError):
    """The idempotency key has made the job ``job_id``, of another task or other params."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(
            f"this Idempotency-Key has made job {job_id}, of another task or other params; "
            "use a new key for another request"
        )


class QueueNotFoundError(TideworkError):
    """Nobody has opened the queue. known: queues of its namespace"""

    def __init__(self, queue: str, namespace: str, known: tuple[str, ...] = ()) -> None:
        self.queue = queue
        self.namespace = namespace
        self.known = known
        names = sorted(known)
        super().__init__(
            f"no program has opened a queue {queue!r} in namespace {namespace!r}"
            f"{did_you_mean(queue, names) or ';'} this namespace has: {listed(names)}"
        )


class WorkerNotFoundError(TideworkError):
    """No worker, or not one alone, is meant by ``name``. known: those that could be."""

    def __init__(self, name: str, known: tuple[str, ...] = (), *, several: bool = False) -> None:
        self.name = name
        self.known = known
        names = ", ".join(known) or "none"
        if several:
            super().__init__(f"several workers are called {name!r}, name one of them: {names}")
        else:
            super().__init__(
                f"no worker {name!r} has been seen in these queues for some minutes; seen: {names}"
            )


class NoAnswerError(TideworkError):
    """A worker did not answer a request, or will not."""

    def __init__(self, worker: str, reason: str) -> None:
        self.worker = worker
        super().__init__(f"worker {worker} gives no answer: {reason}")


class UniqueConflictError(TideworkError):
    """Another job of the queue holds the unique key: ``holder`` is its id."""

    def __init__(self, key: str, holder: str, queue: str) -> None:
        self.key = key
        self.holder = holder
        self.queue = queue
        super().__init__(
            f"unique key {key!r} of queue {queue} is held by job {holder}; nothing was enqueued. "
            "Wait for that job, or choose on_conflict skip or replace"
        )


class TooManyListenersError(TideworkError):
    """No more clients can listen to events of this server, which serves ``most``."""

    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(
            f"{most} clients listen to this server already; come again later, or run another one"
        )


class UnauthenticatedError(TideworkError):
    """A request does not say who makes it, or its proof is not accepted: ``reason``."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class ForbiddenError(TideworkError):
    """A caller has not the ``permission`` in the namespace."""

    def __init__(self, caller: str, permission: str, namespace: str) -> None:
        self.caller = caller
        self.permission = permission
        self.namespace = namespace
        super().__init__(
            f"{caller} may not do this in namespace {namespace}: it needs the permission "
            f"{permission!r}. Ask who runs this server for it"
        )


class ForeignPageError(TideworkError):
    """A web page of another site, or by another name, has sent a request."""


class BrokerError(TideworkError):
    """Something between us and Redis."""


class BrokerUnavailableError(BrokerError):
    """Redis cannot be reached, does not answer in time, or cannot serve just now: it loads its
    data, is a read-only replica, cannot write to its disk. Worth another try."""


class BrokerRefusedError(BrokerError):
    """Redis answers but will not serve us: version, credentials, rights. Mend something first."""


class BrokerFullError(BrokerError):
    """Redis is at maxmemory under noeviction: new work is refused, running work may settle."""


class LayoutError(BrokerError):
    """The queue is of a layout that this client does not serve."""


class StaleRequestError(BrokerError):
    """A later request of the same worker incarnation was already answered."""


class StaleTermError(BrokerError):
    """The queue's stored term is higher than ours: another leader took over."""

    def __init__(self, queue: str, term: int, stored: int) -> None:
        self.queue = queue
        self.term = term
        self.stored = stored
        super().__init__(
            f"queue {queue}: term {term} is stale, term {stored} leads; this write was refused"
        )


class NotDurableError(BrokerError):
    """Stored on the primary, but too few confirmed it in time. Repeating the request is safe."""

    def __init__(
        self, place: str, who: str, acknowledged: int, wanted: int, within: timedelta
    ) -> None:
        self.acknowledged = acknowledged
        self.wanted = wanted
        super().__init__(
            f"Redis at {place} has stored this, acknowledged by {acknowledged} of {wanted} {who} "
            f"within {within.total_seconds():g} s; repeating the same request is safe"
        )
