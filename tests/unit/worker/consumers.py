"""A consumer over a memory broker that can fail, with children that the test speaks for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta

from tests.support.waiting import until
from tests.unit.worker.children import FakeChild, PoolBench
from tidework.clock import SystemClock
from tidework.errors import BrokerUnavailableError
from tidework.metrics import WorkerNumbers
from tidework.model.backlog import JobRecord
from tidework.model.identity import QueueName, new_job_id
from tidework.model.job import Job
from tidework.model.lease import ExchangeReply, ExchangeRequest, QueueLimits
from tidework.model.outcome import Outcome
from tidework.model.task import TaskSpec
from tidework.testing.memory.broker import MemoryBroker
from tidework.worker import frames
from tidework.worker.queue.consumer import Consumer
from tidework.worker.queue.facts import WorkerFacts
from tidework.worker.queue.inbox import Inbox
from tidework.worker.queue.job_log import JobLog
from tidework.worker.queue.renewal import Renewal

QUEUE = QueueName("test", "q")


class UnsteadyBroker(MemoryBroker):
    """Writes exchanges down, those sent ahead apart.

    away: does nothing; mute: does it, the reply is lost; after_ahead: called after each sent ahead
    waits: how often a document was waited for
    """

    def __init__(self, lease: timedelta = timedelta(seconds=12)) -> None:
        super().__init__(SystemClock(), QueueLimits(lease=lease))
        self.requests: list[ExchangeRequest] = []
        self.ahead: list[ExchangeRequest] = []
        self.waits = 0
        self.after_ahead: Callable[[ExchangeRequest], Awaitable[None]] | None = None
        self.away = False
        self.mute = False

    async def exchange(self, queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        (self.requests if request.most_held is None else self.ahead).append(request)
        self._fail_if(self.away)
        reply = await super().exchange(queue, request)
        if request.most_held is not None and self.after_ahead is not None:
            await self.after_ahead(request)
        self._fail_if(self.mute)
        return reply

    async def wait_for_document(self, queue: QueueName, timeout: timedelta) -> bytes | None:
        self.waits += 1
        return await super().wait_for_document(queue, timeout)

    def _fail_if(self, failing: bool) -> None:
        if failing:
            raise BrokerUnavailableError("gone for a test")


class Bench(PoolBench):
    """One consumer of QUEUE with everything around it, loops running."""

    def __init__(
        self,
        slots: int = 1,
        *,
        lease: timedelta = timedelta(seconds=12),
        broker: UnsteadyBroker | None = None,
        name: str = "w.1",
    ) -> None:
        super().__init__(slots)
        self.broker = broker or UnsteadyBroker(lease)
        self.numbers = WorkerNumbers("0", slots)
        self.journal = JobLog("q", self.numbers, self.clock)
        facts = WorkerFacts(name, {"t": TaskSpec("t", "q")}, 600.0, 600.0, lease)
        self.pool.sources.clear()
        self.pool.claims._turns.clear()
        self.consumer = Consumer(QUEUE, 0, self.broker, self.pool, facts, self.journal, self.clock)
        self.pool.add_source(self.consumer)
        self.inbox = Inbox(self.consumer, self.broker, self.journal, self.clock, lease)
        self.renewal = Renewal(self.broker, name, [(self.consumer, self.journal)], lease)
        self.tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        super().start()
        loops = [self.consumer.loop, self.inbox.watch, self.inbox.sweep, self.renewal.loop]
        self.tasks = [asyncio.ensure_future(loop.run()) for loop in loops]

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        results = await asyncio.gather(*self.tasks, return_exceptions=True)
        self.close()
        unexpected = [r for r in results if not isinstance(r, asyncio.CancelledError)]
        assert unexpected == []

    @property
    def child(self) -> FakeChild:
        return self.orders.children[-1]

    async def enqueue(self, *ids: str, task: str = "t") -> None:
        jobs = [Job(name or new_job_id(), task, {}, created_at=0.0) for name in ids]
        await self.broker.enqueue(QUEUE, jobs)

    async def job(self, name: str) -> JobRecord:
        found = await self.broker.get_job(QUEUE, name)
        assert found is not None
        return found

    async def wait_sent(self, count: int, child: FakeChild | None = None) -> None:
        """Until so many job frames have reached the child since this was last asked."""
        target = child or self.child
        arrived: list[frames.JobFrame] = []

        def look() -> bool:
            arrived.extend(target.jobs())
            return len(arrived) >= count

        await until(look)
        assert len(arrived) == count

    def end(self, number: int, outcome: Outcome | None = None) -> None:
        """The child starts and ends a job."""
        self.child.say(
            frames.started_frame(number, self.clock.monotonic()),
            frames.ended_frame(number, outcome or Outcome.complete(), 0.2),
        )

    def start_job(self, number: int) -> None:
        self.child.say(frames.started_frame(number, self.clock.monotonic()))


def sequences(requests: Iterable[ExchangeRequest]) -> list[int]:
    return [request.sequence for request in requests]
