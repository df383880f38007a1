"""A worker of two queues, one of them in trouble: the other one does not suffer for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from tests.unit.worker.consumers import QUEUE, Bench, UnsteadyBroker, until
from tidework.errors import BrokerError
from tidework.model.backlog import Presence
from tidework.model.identity import QueueName
from tidework.model.lease import RenewReply
from tidework.worker.consumer import Consumer, WorkerFacts
from tidework.worker.heartbeat import Heartbeat
from tidework.worker.renewal import Renewal

TROUBLED = QueueName("test", "troubled")


class OneQueueFails(UnsteadyBroker):
    async def renew(
        self, queue: QueueName, incarnation: str, leases: Sequence[tuple[str, str]]
    ) -> RenewReply:
        if queue == TROUBLED:
            raise BrokerError("only here")
        return await super().renew(queue, incarnation, leases)

    async def beat(self, queue: QueueName, presence: Presence, *, ttl: timedelta) -> None:
        if queue == TROUBLED:
            raise BrokerError("only here")
        await super().beat(queue, presence, ttl=ttl)


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


def no() -> bool:
    return False


async def test_presence_in_the_other_queue_is_kept() -> None:
    broker = OneQueueFails()
    bench = Bench()
    queues = [(TROUBLED, bench.journal), (QUEUE, bench.journal)]
    beat = Heartbeat(broker, "w.1", queues, bench.pool, bench.numbers, bench.clock, no, no)
    running = asyncio.ensure_future(beat.loop.run())
    try:
        async with asyncio.timeout(10):
            while not await broker.workers(QUEUE):
                await asyncio.sleep(0.002)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        bench.close()
