"""The client: enqueue, look up, cancel, wait. Async and sync over the same coroutines.

A method and its ``_sync`` twin run the same code; the twin drives it over a blocking connection,
so it works in any program, with or without an event loop of its own (not inside a running one).
Connections are made at the first call, hence by each process for itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from tidework.broker.broker import Producer, PurgeAnswer, ReplayAnswer
from tidework.broker.bulk import purge_all, replay_all
from tidework.broker.redis import connect, connect_blocking
from tidework.broker.transport import drive
from tidework.errors import (
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
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

    def __init__(self, settings: Settings | None = None, *, broker: Producer | None = None) -> None:
        self._settings = settings
        self._given = broker
        self._lock = threading.Lock()
        self._by_loop: dict[tuple[int, int], Producer] = {}
        self._blocking: tuple[int, Producer] | None = None
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

    def _broker(self) -> Producer:
        if self._given is not None:
            return self._given
        # A connection belongs to one process and one event loop.
        place = (os.getpid(), id(asyncio.get_running_loop()))
        found = self._by_loop.get(place)
        if found is None:
            found = self._by_loop[place] = connect(self.settings.redis_url)
        return found

    def _blocking_broker(self) -> Producer:
        if self._given is not None:
            return self._given
        found = self._blocking
        if found is not None and found[0] == os.getpid():
            return found[1]
        with self._lock:
            found = self._blocking
            if found is None or found[0] != os.getpid():
                found = (os.getpid(), connect_blocking(self.settings.redis_url))
                self._blocking = found
            return found[1]

    def broker(self) -> Producer:
        """What serves the running event loop."""
        return self._broker()

    def blocking_broker(self) -> Producer:
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
        """As ``enqueue``."""
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
        """As ``get``."""
        return drive(_get(self._blocking_broker(), self.queue(queue), job_id))

    async def result(self, job_id: str, *, queue: str, timeout: float | None = None) -> Any:
        """Wait until the job ends and return its result (JSON data).

        timeout: seconds; None waits for ever. Raises JobFailedError, JobCancelledError,
        JobNotFoundError, WaitTimeoutError.
        """
        return await _result(self._broker(), self.queue(queue), job_id, timeout, asyncio.sleep)

    def result_sync(self, job_id: str, *, queue: str, timeout: float | None = None) -> Any:
        """As ``result``."""
        name = self.queue(queue)
        return drive(_result(self._blocking_broker(), name, job_id, timeout, _sleep_blocking))

    async def cancel(self, job_id: str, *, queue: str) -> str:
        """Cancel a job: 'cancelled', 'requested' (it runs), 'finished'. Raises JobNotFoundError."""
        return await _cancel(self._broker(), self.queue(queue), job_id)

    def cancel_sync(self, job_id: str, *, queue: str) -> str:
        """As ``cancel``."""
        return drive(_cancel(self._blocking_broker(), self.queue(queue), job_id))

    async def stats(self, queue: str) -> QueueStats:
        """Lengths by state and counters of a queue."""
        return await self._broker().stats(self.queue(queue))

    def stats_sync(self, queue: str) -> QueueStats:
        """As ``stats``."""
        return drive(self._blocking_broker().stats(self.queue(queue)))

    async def queue_length(self, queue: str) -> int:
        """Jobs that could run now and do not (the backlog)."""
        return (await self.stats(queue)).backlog

    def queue_length_sync(self, queue: str) -> int:
        """As ``queue_length``."""
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
        """As ``jobs``."""
        name, broker = self.queue(queue), self._blocking_broker()
        return drive(broker.list_jobs(name, state, within, cursor=cursor, limit=limit))

    async def errors(self, queue: str, *, limit: int = 20) -> tuple[ErrorGroup, ...]:
        """Dead letters grouped by the fingerprint of their error, the most frequent first."""
        return await self._broker().list_errors(self.queue(queue), limit=limit)

    def errors_sync(self, queue: str, *, limit: int = 20) -> tuple[ErrorGroup, ...]:
        """As ``errors``."""
        return drive(self._blocking_broker().list_errors(self.queue(queue), limit=limit))

    async def replay(self, job_ids: Sequence[str], *, queue: str) -> tuple[ReplayAnswer, ...]:
        """Make dead letters ready again with all their attempts; an answer per id."""
        return await self._broker().replay(self.queue(queue), job_ids)

    def replay_sync(self, job_ids: Sequence[str], *, queue: str) -> tuple[ReplayAnswer, ...]:
        """As ``replay``."""
        return drive(self._blocking_broker().replay(self.queue(queue), job_ids))

    async def replay_all(self, queue: str, within: JobFilter = EVERY_JOB) -> Counter[ReplayAnswer]:
        """Replay the dead letters that are dead now and fit, in batches; how many of each answer.

        Jobs that die again meanwhile are left alone.
        """
        return await replay_all(self._broker(), self.queue(queue), within)

    def replay_all_sync(self, queue: str, within: JobFilter = EVERY_JOB) -> Counter[ReplayAnswer]:
        """As ``replay_all``."""
        return drive(replay_all(self._blocking_broker(), self.queue(queue), within))

    async def purge(self, job_ids: Sequence[str], *, queue: str) -> tuple[PurgeAnswer, ...]:
        """Delete ended jobs before their retention is over; an answer per id."""
        return await self._broker().purge(self.queue(queue), job_ids)

    def purge_sync(self, job_ids: Sequence[str], *, queue: str) -> tuple[PurgeAnswer, ...]:
        """As ``purge``."""
        return drive(self._blocking_broker().purge(self.queue(queue), job_ids))

    async def purge_all(
        self, queue: str, state: JobState, within: JobFilter = EVERY_JOB
    ) -> Counter[PurgeAnswer]:
        """Purge the jobs of an ended state that are there now and fit, in batches."""
        return await purge_all(self._broker(), self.queue(queue), state, within)

    def purge_all_sync(
        self, queue: str, state: JobState, within: JobFilter = EVERY_JOB
    ) -> Counter[PurgeAnswer]:
        """As ``purge_all``."""
        return drive(purge_all(self._blocking_broker(), self.queue(queue), state, within))

    async def pause(self, queue: str, reason: str = "") -> bool:
        """Stop claims from the queue until ``resume``; False if it was paused already.

        What runs goes on, and jobs can be enqueued.
        """
        return await self._broker().pause(self.queue(queue), reason)

    def pause_sync(self, queue: str, reason: str = "") -> bool:
        """As ``pause``."""
        return drive(self._blocking_broker().pause(self.queue(queue), reason))

    async def resume(self, queue: str) -> bool:
        """End a pause; False if there was none."""
        return await self._broker().resume(self.queue(queue))

    def resume_sync(self, queue: str) -> bool:
        """As ``resume``."""
        return drive(self._blocking_broker().resume(self.queue(queue)))

    async def close(self) -> None:
        """Give back this event loop's connections."""
        found = self._by_loop.pop((os.getpid(), id(asyncio.get_running_loop())), None)
        if found is not None:
            await found.close()

    def close_sync(self) -> None:
        """Give back the blocking connections."""
        with self._lock:
            found, self._blocking = self._blocking, None
        if found is not None and found[0] == os.getpid():
            drive(found[1].close())


def _tell_enqueued(queue: str, jobs: Sequence[Job], found: Sequence[Enqueued]) -> None:
    if not logger.isEnabledFor(logging.DEBUG):
        return
    for job, answer in zip(jobs, found, strict=True):
        extra = {"job_id": answer.id, "task": job.task, "queue": queue}
        event = "job enqueued" if answer.inserted else "job not enqueued, this one stands for it"
        logger.debug(event, extra=extra)


_Sleep = Callable[[float], Coroutine[Any, Any, None]]


async def _sleep_blocking(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251 - driven without an event loop


async def _get(broker: Producer, queue: QueueName, job_id: str) -> JobRecord:
    found = await broker.get_job(queue, job_id)
    if found is None:
        raise JobNotFoundError(job_id, str(queue))
    return found


async def _result(
    broker: Producer, queue: QueueName, job_id: str, timeout: float | None, sleep: _Sleep
) -> Any:
    started = time.monotonic()
    wait = FIRST_LOOK_S
    record = await _get(broker, queue, job_id)
    while record.state not in FINISHED_STATES:
        if timeout is not None:
            rest = started + timeout - time.monotonic()
            if rest <= 0:
                raise WaitTimeoutError(job_id, timeout, record.state.value)
            wait = min(wait, rest)
        await sleep(wait)
        wait = min(wait * 1.5, LONGEST_LOOK_S)
        record = await _get(broker, queue, job_id)
    if record.state is JobState.CANCELLED:
        raise JobCancelledError(job_id)
    if record.state is JobState.DEAD:
        error = record.error or JobError("Unknown", "no error was kept")
        raise JobFailedError(job_id, error.type, error.message, error.trace)
    return record.result


async def _cancel(broker: Producer, queue: QueueName, job_id: str) -> str:
    answer = await broker.cancel(queue, job_id)
    if answer == "unknown":
        raise JobNotFoundError(job_id, str(queue))
    return str(answer)
