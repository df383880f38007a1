"""The inbox of one queue: documents that any program may have put there become jobs.

While the consumer is starved, one blocked command waits for a document or for the marker that
says that there is work, with an exchange behind it (behind_wait.py). While it is not, documents are
looked for once in a while. What becomes of them is said in intake.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from tidework.backoff import Backoff
from tidework.broker.broker import Claims
from tidework.broker.documents import MARKER
from tidework.clock import Clock
from tidework.errors import BrokerError, BrokerFullError
from tidework.intake import Intake, Taken
from tidework.loop import Loop, shortened
from tidework.worker.queue.behind_wait import BehindWait
from tidework.worker.queue.consumer import Consumer
from tidework.worker.queue.job_log import JobLog


class Inbox:
    """Takes in the documents of the consumer's queue.

    lease: of the queue's jobs; sweeps and blocked waits take a third of it
    """

    def __init__(
        self, consumer: Consumer, broker: Claims, job_log: JobLog, clock: Clock, lease: timedelta
    ) -> None:
        self._consumer = consumer
        self._job_log = job_log
        self._clock = clock
        self._behind_wait = BehindWait(consumer, broker, job_log, clock, lease)
        self._patience = lease / 3
        self._often = min(timedelta(seconds=1), self._patience)
        self._seldom = False
        self._backoffs = (Backoff(), Backoff())
        self._intake = Intake(broker, consumer.queue, clock, job_log.note_rejected)
        self._sweep_at = 0.0
        self.watch = Loop(f"inbox of {consumer.queue}", self._watch)
        self.sweep = Loop(f"sweep of {consumer.queue}", self._sweep)
        consumer.on_documents = self._on_documents

    async def _watch(self) -> timedelta:
        if not self._behind_wait.is_unanswered:
            await self._consumer.starved.wait()
        failures = self._backoffs[0].failures
        wait = await self._tolerate(0, self._wait)
        if self._backoffs[0].failures > failures:
            # Nobody can wake us: a full server refuses to let us wait, and still gives out jobs.
            self._consumer.on_work()
        return wait

    async def _wait(self) -> timedelta:
        await self._behind_wait.close()
        if not self._consumer.starved.is_set():
            return timedelta(0)
        try:
            document, exchanged = await self._behind_wait.wait(shortened(self._patience))
        except BrokerFullError:
            # Nobody may wait here now. What was put in before goes on being taken in: as fast as
            # it becomes work, else after a pause.
            taken = await self._intake.take_some()
            self._note(taken)
            if not taken.due:
                raise
            return timedelta(0)
        if document is not None and document != MARKER:
            await self._take((document,))
        elif not exchanged:
            # Without a document too: a marker may have died with another worker.
            self._consumer.on_work(woken=document is not None)
        return timedelta(0)

    async def end(self) -> None:
        """Once nothing is waited for any more: find out what was claimed in the last moment."""
        while self._behind_wait.is_unanswered:
            wait = await self._tolerate(0, self._close)
            await asyncio.sleep(wait.total_seconds())

    async def _close(self) -> timedelta:
        await self._behind_wait.close(claims=False)
        return timedelta(0)

    async def _sweep(self) -> timedelta:
        return await self._tolerate(1, self._look_around)

    async def _look_around(self) -> timedelta:
        consumer = self._consumer
        now = self._clock.monotonic()
        intake = self._intake
        if consumer.documents_seen and not consumer.starved.is_set() and not consumer.draining:
            self._note(await intake.take_all())
        if now >= self._sweep_at and (
            consumer.documents_seen or intake.has_seen or not self._sweep_at
        ):
            self._sweep_at = now + self._patience.total_seconds()
            consumer.documents_seen = False
            self._note(await intake.sweep())
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
            self._job_log.note_redis_error(error, "inbox")
            return self._backoffs[which].next()
        self._backoffs[which].reset()
        return wait

    async def _take(self, documents: Sequence[bytes]) -> None:
        """Take these in, and what else the inbox holds."""
        self._note(await self._intake.take(documents))

    def _note(self, taken: Taken) -> None:
        if taken.markers:
            # An exchange removes one of them, the next sweep the others.
            self._consumer.documents_seen = True
        if taken.jobs or taken.markers:
            self._consumer.on_work(woken=taken.markers > 0)
