"""once: a block of a job's code that is done once per key, though its job may run again.

    with once("charge:42", ttl=timedelta(days=1)) as first:
        if first:
            charge()

Two phases: while the block runs, a mark under the job's lease; after it, done. A mark whose lease
is gone counts no more. So the block is done at least once: who is killed between its effect and
the end of the block has it done again. While Redis is away that end is tried again as long as the
job may run: its worker ends it at the hard timeout, or when its lease is lost.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from types import TracebackType

from tidework.broker.answers import OnceAnswer
from tidework.broker.broker import Producer
from tidework.broker.connection.transport import drive
from tidework.client import Client
from tidework.errors import (
    BrokerError,
    BrokerUnavailableError,
    ConfigurationError,
    LeaseLostError,
    NotDurableError,
)
from tidework.model.current import CurrentJob, current_job
from tidework.model.endings import Released
from tidework.model.identity import QueueName
from tidework.model.lease import Lease
from tidework.model.spans import Seconds, span_given
from tidework.model.unique import MAX_KEY_LENGTH, MAX_TTL_S

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between two tries to say that a block is done."""

logger = logging.getLogger(__name__)
_client = Client()


class Once:
    """One use of ``once``; entered with ``with`` or ``async with``."""

    def __init__(self, key: str, ttl: timedelta) -> None:
        self._key = key
        self._ttl = ttl
        self._held: tuple[QueueName, Lease] | None = None
        self._failures = 0

    def __enter__(self) -> bool:
        return drive(self._begin(_client.blocking_broker()))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            drive(self._forget(_client.blocking_broker()))
            return
        while not drive(self._end(_client.blocking_broker())):
            time.sleep(self._pause())

    async def __aenter__(self) -> bool:
        return await self._begin(_client.broker())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            await self._forget(_client.broker())
            return
        while not await self._end(_client.broker()):  # noqa: ASYNC110 - Redis tells nobody
            await asyncio.sleep(self._pause())

    async def _begin(self, broker: Producer) -> bool:
        job = current_job()
        queue, lease = _place_of(job)
        try:
            answer = await broker.once_begin(queue, lease, self._key)
        except (BrokerUnavailableError, NotDurableError) as error:
            # Nothing of the block was done: that Redis is away is no fault of the job.
            raise Released(
                f"Redis does not say which job does once({self._key!r}): {error}"
            ) from error
        if answer is OnceAnswer.LOST:
            raise LeaseLostError(job.id, job.queue)
        if answer is OnceAnswer.PENDING:
            raise Released(f"another job is in the block of once({self._key!r})")
        self._held = (queue, lease) if answer is OnceAnswer.FIRST else None
        return self._held is not None

    async def _end(self, broker: Producer) -> bool:
        """The block was done. False if that could not be told."""
        if self._held is None:
            return True
        queue, lease = self._held
        try:
            is_ours = await broker.once_end(queue, lease, self._key, ttl=self._ttl)
        except BrokerError as error:
            if not self._failures:
                text = "the end of once(%r) is reported again until Redis takes it: %s"
                logger.warning(text, self._key, error, extra={"event": "once_not_noted"})
            self._failures += 1
            return False
        self._held = None
        if not is_ours:
            raise LeaseLostError(lease.job_id, queue.name)
        return True

    async def _forget(self, broker: Producer) -> None:
        """The block raised."""
        if self._held is None:
            return
        (queue, lease), self._held = self._held, None
        try:
            await broker.once_end(queue, lease, self._key, ttl=None)
        except BrokerError as error:  # the block's own error is what counts
            logger.warning(
                "the mark of once(%r) stays while its job runs: %s",
                self._key,
                error,
                extra={"event": "once_not_forgotten"},
            )

    def _pause(self) -> float:
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._failures - 1, 10))


def once(key: str, ttl: Seconds) -> Once:
    """Have the block done once per key of the job's queue, within ``ttl`` (seconds) after it.

    key: 1 to 200 printable characters. What is entered is True for the job that is to do the block,
    False if it was done. While another job is at it, this one is released uncounted and runs
    again after 1 s, then 2 s, 4 s and so on up to a minute; likewise if Redis is away at the
    start. If the block raises, whoever comes next is the first again.
    Raises ConfigurationError for a bad value and outside of a job, LeaseLostError, and BrokerError
    before the block. After it Redis is asked again until it answers or the job's time is over.
    """
    span = span_given(f"once({key!r}): ttl", ttl)
    if not 1 <= len(key) <= MAX_KEY_LENGTH or not key.isprintable():
        raise ConfigurationError(
            f"once({key!r}): the key has to be 1 to {MAX_KEY_LENGTH} printable characters"
        )
    if not 0 < span.total_seconds() <= MAX_TTL_S:
        raise ConfigurationError(
            f"once({key!r}): ttl has to be above 0 and at most {MAX_TTL_S:.0f} seconds"
        )
    return Once(key, span)


def _place_of(job: CurrentJob) -> tuple[QueueName, Lease]:
    if job.lease is None:
        raise ConfigurationError("once() was called in a job that has no lease")
    return QueueName(job.namespace, job.queue), job.lease
