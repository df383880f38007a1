"""The client: enqueue, look up, cancel, wait. Async and sync over the same coroutines.

A method and its ``_sync`` twin run the same code; the twin drives it over a blocking connection,
so it works in any program, with or without an event loop of its own (not inside a running one).
Connections are made at the first call, hence by each process for itself.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from tidework.broker.broker import Producer
from tidework.broker.redis import connect, connect_blocking
from tidework.broker.transport import drive
from tidework.errors import (
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
    WaitTimeoutError,
)
from tidework.model.backlog import JobPage, JobRecord, QueueStats
from tidework.model.identity import QueueName
from tidework.model.job import FINISHED_STATES, Job, JobState
from tidework.model.outcome import JobError
from tidework.settings import Settings

T = TypeVar("T")
FIRST_LOOK_S = 0.01
LONGEST_LOOK_S = 0.5


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

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        if self._settings is None:
            self._settings = Settings.load()
        return self._settings

    def queue(self, name: str) -> QueueName:
        """A queue of the client's namespace. Raises ConfigurationError for a bad name."""
        return QueueName(self.settings.namespace, name)

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
        with self._lock:
            if self._blocking is None or self._blocking[0] != os.getpid():
                self._blocking = (os.getpid(), connect_blocking(self.settings.redis_url))
            return self._blocking[1]

    # Each operation is written once, over a broker and a way to sleep.

    async def enqueue(self, queue: str, jobs: Sequence[Job]) -> tuple[bool, ...]:
        """Insert jobs in one step; False for an id already known.

        Raises EnvelopeError, BrokerFullError, BrokerUnavailableError, BrokerRefusedError.
        """
        return await _enqueue(self._broker(), self.queue(queue), jobs)

    def enqueue_sync(self, queue: str, jobs: Sequence[Job]) -> tuple[bool, ...]:
        """As ``enqueue``."""
        return drive(_enqueue(self._blocking_broker(), self.queue(queue), jobs))

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
        return drive(_stats(self._blocking_broker(), self.queue(queue)))

    async def queue_length(self, queue: str) -> int:
        """Jobs that could run now and do not (the backlog)."""
        return (await self.stats(queue)).backlog

    def queue_length_sync(self, queue: str) -> int:
        """As ``queue_length``."""
        return self.stats_sync(queue).backlog

    async def jobs(
        self, queue: str, state: JobState, *, cursor: str | None = None, limit: int = 100
    ) -> JobPage:
        """A page of job ids in one state."""
        return await self._broker().list_jobs(self.queue(queue), state, cursor=cursor, limit=limit)

    def jobs_sync(
        self, queue: str, state: JobState, *, cursor: str | None = None, limit: int = 100
    ) -> JobPage:
        """As ``jobs``."""
        broker = self._blocking_broker()
        return drive(_jobs(broker, self.queue(queue), state, cursor, limit))

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
            drive(_close(found[1]))


_Sleep = Callable[[float], Coroutine[Any, Any, None]]


async def _sleep_blocking(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251 - driven without an event loop


async def _enqueue(broker: Producer, queue: QueueName, jobs: Sequence[Job]) -> tuple[bool, ...]:
    return await broker.enqueue(queue, jobs) if jobs else ()


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


async def _stats(broker: Producer, queue: QueueName) -> QueueStats:
    return await broker.stats(queue)


async def _jobs(
    broker: Producer, queue: QueueName, state: JobState, cursor: str | None, limit: int
) -> JobPage:
    return await broker.list_jobs(queue, state, cursor=cursor, limit=limit)


async def _close(broker: Producer) -> None:
    await broker.close()
