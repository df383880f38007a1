"""A worker of two queues, one of them in trouble: the other one does not suffer for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from tests.support.waiting import until
from tests.unit.worker.consumers import QUEUE, Bench, UnsteadyBroker
from tests.unit.worker.reporter import Reporter
from tidework.errors import BrokerError
from tidework.model.backlog import Presence, StacksAnswer
from tidework.model.identity import QueueName
from tidework.model.lease import ExchangeReply, ExchangeRequest, RenewReply
from tidework.worker.heartbeat import Heartbeat
from tidework.worker.queue.consumer import Consumer
from tidework.worker.queue.facts import WorkerFacts
from tidework.worker.queue.renewal import Renewal

TROUBLED = QueueName("test", "troubled")


class OneQueueFails(UnsteadyBroker):
    async def exchange(self, queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        if queue == TROUBLED:
            raise BrokerError("only here")
        return await super().exchange(queue, request)

    async def renew(
        self, queue: QueueName, incarnation: str, leases: Sequence[tuple[str, str]]
    ) -> RenewReply:
        if queue == TROUBLED:
            raise BrokerError("only here")
        return await super().renew(queue, incarnation, leases)

    async def beat(
        self,
        queue: QueueName,
        presence: Presence,
        *,
        ttl: timedelta,
        stacks: StacksAnswer | None = None,
    ) -> int:
        if queue == TROUBLED:
            raise BrokerError("only here")
        return await super().beat(queue, presence, ttl=ttl, stacks=stacks)


class Holder(Consumer):
    def leases(self) -> list[tuple[str, str]]:
        return [("x", "w.1:1")]


async def test_leases_of_the_other_queue_are_renewed() -> None:
    bench = Bench(lease=timedelta(milliseconds=300))
    bench.broker.__class__ = OneQueueFails
    facts = WorkerFacts("w.1", {}, 600.0, 600.0)
    troubled = Holder(TROUBLED, 1, bench.broker, bench.pool, facts, bench.journal, bench.clock)
    pairs = [(troubled, bench.journal), (bench.consumer, bench.journal)]
    bench.renewal = Renewal(bench.broker, "w.1", pairs, timedelta(milliseconds=300))
    bench.start()
    try:
        await bench.enqueue("a")
        await bench.wait_sent(1)
        bench.start_job(1)
        entries = bench.broker._queues[QUEUE].entries
        first = entries["a"].lease_ms
        await until(lambda: entries["a"].lease_ms > first + 600)
    finally:
        await bench.stop()


async def test_the_other_queue_has_the_slots() -> None:
    bench = Bench()
    bench.broker.__class__ = OneQueueFails
    facts = WorkerFacts("w.1", {}, 600.0, 600.0)
    troubled = Consumer(TROUBLED, 1, bench.broker, bench.pool, facts, bench.journal, bench.clock)
    bench.pool.add_source(troubled)
    bench.start()
    bench.tasks.append(asyncio.ensure_future(troubled.loop.run()))
    try:
        await until(lambda: bench.numbers.redis_errors["BrokerError"] > 0)
        await bench.enqueue("a", "b", "c")
        for number in (1, 2, 3):
            await bench.wait_sent(1)
            bench.end(number)
        await until(lambda: bench.numbers.total("succeeded") == 3)
    finally:
        await bench.stop()


async def test_presence_in_the_other_queue_is_kept() -> None:
    broker = OneQueueFails()
    bench = Bench()
    queues = [(TROUBLED, bench.journal), (QUEUE, bench.journal)]
    beat = Heartbeat(broker, "w.1", queues, dict, Reporter(), bench.numbers, bench.clock)
    running = asyncio.ensure_future(beat.loop.run())
    try:
        await until(lambda: broker.workers(QUEUE), "it is present in the other queue")
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        bench.close()
