"""The client: enqueue, look up, cancel, wait. Async and sync over the same coroutines.

A method and its ``_sync`` twin run the same code; the twin drives it over a blocking connection,
so it works in any program, with or without an event loop of its own (not inside a running one).
Connections are made at the first call, by each process for itself, and end with the event loop or
the process that they belong to.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from tidework.broker.answers import PromoteAnswer, PurgeAnswer, ReplayAnswer
from tidework.broker.broker import Broker
from tidework.broker.bulk import purge_all, replay_all
from tidework.broker.connection.transport import drive
from tidework.broker.redis.per_loop import Brokers
from tidework.errors import (
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
    ResultError,
    ResultExpiredError,
    WaitTimeoutError,
)
from tidework.model.backlog import (
    EVERY_JOB,
    ErrorGroup,
    JobFilter,
    JobPage,
    JobRecord,
    QueueStats,
)
from tidework.model.bounds import wait_given
from tidework.model.identity import QueueName
from tidework.model.job import FINISHED_STATES, Enqueued, Job, JobState
from tidework.model.outcome import JobError
from tidework.settings import Settings

logger = logging.getLogger(__name__)

T = TypeVar("T")
FIRST_LOOK_S = 0.01
LONGEST_LOOK_S = 0.5
MOST_QUEUES_KEPT = 1000


class Client:
    """Puts jobs into queues and looks at them.

    settings: None = read TIDEWORK_* at the first call
    broker:   for tests; used by the async methods and the sync ones alike
    """

    def __init__(self, settings: Settings | None = None, *, broker: Broker | None = None) -> None:
        self._settings = settings
        self._given = broker
        self._brokers = Brokers(lambda: self.settings.redis_url)
        self._queues: dict[str, QueueName] = {}

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        if self._settings is None:
            self._settings = Settings.load()
        return self._settings

    def queue(self, name: str) -> QueueName:
        """A queue of the client's namespace. Raises ConfigurationError for a bad name."""
        found = self._queues.get(name)
        if found is None:
            found = QueueName(self.settings.namespace, name)
            if len(self._queues) < MOST_QUEUES_KEPT:
                self._queues[name] = found
        return found

    def _broker(self) -> Broker:
        return self._given or self._brokers.of_loop()

    def _blocking_broker(self) -> Broker:
        return self._given or self._brokers.blocking()

    def broker(self) -> Broker:
        """What serves the running event loop."""
        return self._broker()

    def blocking_broker(self) -> Broker:
        """What serves programs without one: run its coroutines with ``transport.drive``."""
        return self._blocking_broker()

    # Each operation is written once, over a broker and a way to sleep.

    async def enqueue(self, queue: str, jobs: Sequence[Job]) -> tuple[Enqueued, ...]:
        """Insert jobs in one step; what became of each.

        A job whose id is known, or whose unique key is held, is not inserted.
        Raises UniqueConflictError, EnvelopeError, BrokerError.
        """
        if not jobs:
            return ()
        found = await self._broker().enqueue(self.queue(queue), jobs)
        _tell_enqueued(queue, jobs, found)
        return found

    def enqueue_sync(self, queue: str, jobs: Sequence[Job]) -> tuple[Enqueued, ...]:
        """Blocking form of ``enqueue``."""
        name = self._queues.get(queue) or self.queue(queue)
        if not jobs:
            return ()
        found = drive(self._blocking_broker().enqueue(name, jobs))
        _tell_enqueued(queue, jobs, found)
        return found

    async def get(self, job_id: str, *, queue: str) -> JobRecord:
        """Everything known of a job. Raises JobNotFoundError."""
        return await _get(self._broker(), self.queue(queue), job_id)

    def get_sync(self, job_id: str, *, queue: str) -> JobRecord:
        """Blocking form of ``get``."""
        return drive(_get(self._blocking_broker(), self.queue(queue), job_id))

    async def result(self, job_id: str, *, queue: str, timeout: float | None = None) -> Any:
        """Wait until the job ends and return its result as JSON data; JobHandle.result gives it in
        the type that the task declares.

        timeout: seconds; None waits for ever. Raises JobFailedError, JobCancelledError,
        JobNotFoundError, ResultExpiredError, ResultError, WaitTimeoutError, and ConfigurationError
        for a timeout that is none.
        """
        return (await self.wait_succeeded(job_id, queue=queue, timeout=timeout)).result

    def result_sync(self, job_id: str, *, queue: str, timeout: float | None = None) -> Any:
        """Blocking form of ``result``."""
        return self.wait_succeeded_sync(job_id, queue=queue, timeout=timeout).result

    async def wait_succeeded(
        self, job_id: str, *, queue: str, timeout: float | None = None, is_known: bool = False
    ) -> JobRecord:
        """Wait until the job has succeeded with a result, and return its record.

        is_known: it was enqueued, so that one which is not there is forgotten. Raises as
        ``result``.
        """
        wait = _Wait(self._broker(), self.queue(queue), job_id, asyncio.sleep)
        return await wait.until_succeeded(timeout, is_known=is_known)

    def wait_succeeded_sync(
        self, job_id: str, *, queue: str, timeout: float | None = None, is_known: bool = False
    ) -> JobRecord:
        """Blocking form of ``wait_succeeded``."""
        wait = _Wait(self._blocking_broker(), self.queue(queue), job_id, _sleep_blocking)
        return drive(wait.until_succeeded(timeout, is_known=is_known))

    async def cancel(self, job_id: str, *, queue: str) -> str:
        """Cancel a job: 'cancelled', 'requested' (it runs), 'finished'. Raises JobNotFoundError."""
        return await _cancel(self._broker(), self.queue(queue), job_id)

    def cancel_sync(self, job_id: str, *, queue: str) -> str:
        """Blocking form of ``cancel``."""
        return drive(_cancel(self._blocking_broker(), self.queue(queue), job_id))

    async def promote(self, job_id: str, *, queue: str) -> PromoteAnswer:
        """Make a scheduled job ready at once; else why not."""
        return await self._broker().promote(self.queue(queue), job_id)

    def promote_sync(self, job_id: str, *, queue: str) -> PromoteAnswer:
        """Blocking form of ``promote``."""
        return drive(self._blocking_broker().promote(self.queue(queue), job_id))

    async def stats(self, queue: str) -> QueueStats:
        """Lengths by state and counters of a queue."""
        return await self._broker().stats(self.queue(queue))

    def stats_sync(self, queue: str) -> QueueStats:
        """Blocking form of ``stats``."""
        return drive(self._blocking_broker().stats(self.queue(queue)))

    async def queue_length(self, queue: str) -> int:
        """Jobs that could run now and do not (the backlog)."""
        return (await self.stats(queue)).backlog

    def queue_length_sync(self, queue: str) -> int:
        """Blocking form of ``queue_length``."""
        return self.stats_sync(queue).backlog

    async def jobs(
        self,
        queue: str,
        state: JobState,
        within: JobFilter = EVERY_JOB,
        *,
        cursor: str | None = None,
        limit: int = 100,
    ) -> JobPage:
        """A page of job ids in one state. Raises ConfigurationError, see JobFilter."""
        name = self.queue(queue)
        return await self._broker().list_jobs(name, state, within, cursor=cursor, limit=limit)

    def jobs_sync(
        self,
        queue: str,
        state: JobState,
        within: JobFilter = EVERY_JOB,
        *,
        cursor: str | None = None,
        limit: int = 100,
    ) -> JobPage:
        """Blocking form of ``jobs``."""
        name, broker = self.queue(queue), self._blocking_broker()
        return drive(broker.list_jobs(name, state, within, cursor=cursor, limit=limit))

    async def errors(self, queue: str, *, limit: int = 20) -> tuple[ErrorGroup, ...]:
        """Dead letters grouped by the fingerprint of their error, the most frequent first."""
        return await self._broker().list_errors(self.queue(queue), limit=limit)

    def errors_sync(self, queue: str, *, limit: int = 20) -> tuple[ErrorGroup, ...]:
        """Blocking form of ``errors``."""
        return drive(self._blocking_broker().list_errors(self.queue(queue), limit=limit))

    async def replay(self, job_ids: Sequence[str], *, queue: str) -> tuple[ReplayAnswer, ...]:
        """Make dead letters ready again with all their attempts; an answer per id."""
        return await self._broker().replay(self.queue(queue), job_ids)

    def replay_sync(self, job_ids: Sequence[str], *, queue: str) -> tuple[ReplayAnswer, ...]:
        """Blocking form of ``replay``."""
        return drive(self._blocking_broker().replay(self.queue(queue), job_ids))

    async def replay_all(self, queue: str, within: JobFilter = EVERY_JOB) -> Counter[ReplayAnswer]:
        """Replay the dead letters that are dead now and fit, in batches; how many of each answer.

        Jobs that die again meanwhile are left alone.
        """
        return await replay_all(self._broker(), self.queue(queue), within)

    def replay_all_sync(self, queue: str, within: JobFilter = EVERY_JOB) -> Counter[ReplayAnswer]:
        """Blocking form of ``replay_all``."""
        return drive(replay_all(self._blocking_broker(), self.queue(queue), within))

    async def purge(self, job_ids: Sequence[str], *, queue: str) -> tuple[PurgeAnswer, ...]:
        """Delete ended jobs before their retention is over; an answer per id."""
        return await self._broker().purge(self.queue(queue), job_ids)

    def purge_sync(self, job_ids: Sequence[str], *, queue: str) -> tuple[PurgeAnswer, ...]:
        """Blocking form of ``purge``."""
        return drive(self._blocking_broker().purge(self.queue(queue), job_ids))

    async def purge_all(
        self, queue: str, state: JobState, within: JobFilter = EVERY_JOB
    ) -> Counter[PurgeAnswer]:
        """Purge the jobs of an ended state that are there now and fit, in batches."""
        return await purge_all(self._broker(), self.queue(queue), state, within)

    def purge_all_sync(
        self, queue: str, state: JobState, within: JobFilter = EVERY_JOB
    ) -> Counter[PurgeAnswer]:
        """Blocking form of ``purge_all``."""
        return drive(purge_all(self._blocking_broker(), self.queue(queue), state, within))

    async def pause(self, queue: str, reason: str = "") -> bool:
        """Stop claims from the queue until ``resume``; False if it was paused already.

        What runs goes on, and jobs can be enqueued.
        """
        return await self._broker().pause(self.queue(queue), reason)

    def pause_sync(self, queue: str, reason: str = "") -> bool:
        """Blocking form of ``pause``."""
        return drive(self._blocking_broker().pause(self.queue(queue), reason))

    async def resume(self, queue: str) -> bool:
        """End a pause; False if there was none."""
        return await self._broker().resume(self.queue(queue))

    def resume_sync(self, queue: str) -> bool:
        """Blocking form of ``resume``."""
        return drive(self._blocking_broker().resume(self.queue(queue)))

    async def close(self) -> None:
        """Close this event loop's connections. A loop that is shut down does so itself."""
        await self._brokers.close_of_loop()

    def close_sync(self) -> None:
        """Close the blocking connections."""
        self._brokers.close_blocking()


def _tell_enqueued(queue: str, jobs: Sequence[Job], found: Sequence[Enqueued]) -> None:
    if not logger.isEnabledFor(logging.DEBUG):
        return
    for job, answer in zip(jobs, found, strict=True):
        event = "job_enqueued" if answer.inserted else "job_not_enqueued"
        text = "job enqueued" if answer.inserted else "job not enqueued, this one stands for it"
        extra = {"event": event, "job_id": answer.id, "task": job.task, "queue": queue}
        logger.debug(text, extra=extra)


_Sleep = Callable[[float], Coroutine[Any, Any, None]]


async def _sleep_blocking(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251 - driven without an event loop


async def _get(broker: Broker, queue: QueueName, job_id: str) -> JobRecord:
    found = await broker.get_job(queue, job_id)
    if found is None:
        raise await _missing(broker, queue, job_id)
    return found


async def _missing(
    broker: Broker, queue: QueueName, job_id: str, *, is_known: bool = False
) -> JobNotFoundError:
    """Why there is no such job. ``is_known``: it was enqueued for certain."""
    ended_at = await broker.forgotten_at(queue, job_id)
    if is_known or ended_at is not None:
        return ResultExpiredError(job_id, str(queue), ended_at)
    return JobNotFoundError(job_id, str(queue))


class _Wait(NamedTuple):
    """A wait for the end of one job."""

    broker: Broker
    queue: QueueName
    job_id: str
    sleep: _Sleep

    async def until_succeeded(self, timeout: float | None, *, is_known: bool) -> JobRecord:
        """See Client.wait_succeeded."""
        record = await self._until_ended(wait_given("result: timeout", timeout), is_known=is_known)
        if record.state is JobState.CANCELLED:
            raise JobCancelledError(self.job_id)
        if record.state is JobState.DEAD:
            error = record.error or JobError("Unknown", "no error was kept")
            raise JobFailedError(self.job_id, error.type, error.message, error.trace)
        if record.result_refusal:
            raise ResultError(self.job_id, record.result_refusal)
        return record

    async def _until_ended(self, timeout: float | None, *, is_known: bool) -> JobRecord:
        started = time.monotonic()
        wait = FIRST_LOOK_S
        record = await self._look(is_known=is_known)
        while record.state not in FINISHED_STATES:
            if timeout is not None:
                rest = started + timeout - time.monotonic()
                if rest <= 0:
                    raise WaitTimeoutError(self.job_id, timeout, record.state.value)
                wait = min(wait, rest)
            await self.sleep(wait)
            wait = min(wait * 1.5, LONGEST_LOOK_S)
            record = await self._look(is_known=True)
        return record

    async def _look(self, *, is_known: bool) -> JobRecord:
        found = await self.broker.get_job(self.queue, self.job_id)
        if found is not None:
            return found
        raise await _missing(self.broker, self.queue, self.job_id, is_known=is_known)


async def _cancel(broker: Broker, queue: QueueName, job_id: str) -> str:
    answer = await broker.cancel(queue, job_id)
    if answer == "unknown":
        raise await _missing(broker, queue, job_id)
    return str(answer)
