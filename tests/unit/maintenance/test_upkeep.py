"""Upkeep of queues that have no worker: all of them, whatever happens to one."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from tests.support.waiting import until
from tidework.broker.answers import UpkeepReply
from tidework.broker.broker import Broker
from tidework.clock import ManualClock
from tidework.errors import BrokerUnavailableError
from tidework.maintenance.upkeep import Upkeep, UpkeepCounters
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import ExchangeRequest
from tidework.testing.memory.broker import MemoryBroker

START = datetime(2026, 1, 5, 10, tzinfo=UTC)
QUEUES = [QueueName("shop", f"q{n}") for n in range(20)]
NOTHING = UpkeepReply(0, 0, 0, 0, None)


class ScriptedBroker:
    """Answers ``upkeep`` alone: with a reply, an error, or not before an event."""

    def __init__(self) -> None:
        self.replies: dict[QueueName, UpkeepReply | Exception | asyncio.Event] = {}
        self.kept: list[QueueName] = []
        self.at_once = 0
        self.most_at_once = 0

    async def upkeep(self, queue: QueueName) -> UpkeepReply:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0)
            reply = self.replies.get(queue, NOTHING)
            if isinstance(reply, asyncio.Event):
                await reply.wait()
                reply = NOTHING
            if isinstance(reply, Exception):
                raise reply
            self.kept.append(queue)
            return reply
        finally:
            self.at_once -= 1

    def upkeep_of(self, queues: list[QueueName]) -> Upkeep:
        return Upkeep(cast("Broker", self), lambda: queues)


async def test_without_a_worker_due_jobs_are_promoted_lost_ones_reaped_old_ones_pruned() -> None:
    clock = ManualClock(START)
    broker = MemoryBroker(clock)
    queue = QUEUES[0]
    soon = START.timestamp() + 30
    await broker.enqueue(
        queue, [Job("lost", "t", {}), Job("later", "t", {}, available_at=soon), Job("old", "t", {})]
    )
    await broker.cancel(queue, "old")
    await broker.exchange(queue, ExchangeRequest("w.1", 1, 1))
    upkeep = Upkeep(broker, lambda: [queue])

    for _ in range(60):
        clock.advance(await upkeep.tick())
    assert set((await broker.list_jobs(queue, JobState.READY)).ids) == {"lost", "later"}
    for _ in range(3600):
        clock.advance(await upkeep.tick())

    assert await broker.get_job(queue, "old") is None
    assert upkeep.counters == UpkeepCounters(rounds=3660, promoted=1, reaped=1, pruned=1)


async def test_the_queues_are_asked_for_in_every_round() -> None:
    broker = ScriptedBroker()
    queues = QUEUES[:1]
    upkeep = broker.upkeep_of(queues)
    await upkeep.tick()

    queues[:] = QUEUES[1:3]
    await upkeep.tick()

    assert broker.kept == QUEUES[:3]


async def test_no_queue_is_no_work() -> None:
    upkeep = ScriptedBroker().upkeep_of([])

    assert await upkeep.tick() == timedelta(seconds=1)


async def test_trouble_with_one_queue_is_told_once_and_keeps_no_other_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = ScriptedBroker()
    broker.replies[QUEUES[3]] = BrokerUnavailableError("Redis cannot be reached")
    upkeep = broker.upkeep_of(QUEUES)
    with caplog.at_level(logging.INFO):
        await upkeep.tick()
        await upkeep.tick()
        assert set(broker.kept) == {*QUEUES} - {QUEUES[3]}
        del broker.replies[QUEUES[3]]
        await upkeep.tick()

    assert QUEUES[3] in broker.kept
    assert upkeep.counters.failures == 2
    assert [record.getMessage() for record in caplog.records] == [
        "no upkeep of queue shop/q3: Redis cannot be reached",
        "upkeep of queue shop/q3 goes on",
    ]


async def test_a_slow_queue_holds_up_only_its_own_turn() -> None:
    broker = ScriptedBroker()
    answer = asyncio.Event()
    broker.replies[QUEUES[0]] = answer
    tick = asyncio.create_task(broker.upkeep_of(QUEUES).tick())

    await until(lambda: len(broker.kept) == len(QUEUES) - 1)
    assert not tick.done()
    answer.set()
    await tick

    assert broker.most_at_once == 8


async def test_a_full_batch_is_followed_at_once() -> None:
    broker = ScriptedBroker()
    upkeep = broker.upkeep_of(QUEUES[:1])
    broker.replies[QUEUES[0]] = UpkeepReply(100, 0, 0, 0, None)
    assert await upkeep.tick() < timedelta(seconds=1)

    broker.replies[QUEUES[0]] = UpkeepReply(99, 0, 0, 0, None)
    assert await upkeep.tick() == timedelta(seconds=1)


async def test_lost_jobs_are_told() -> None:
    broker = ScriptedBroker()
    broker.replies[QUEUES[0]] = UpkeepReply(0, 3, 1, 0, None)
    upkeep = broker.upkeep_of(QUEUES[:2])

    await upkeep.tick()

    assert (upkeep.counters.reaped, upkeep.counters.buried) == (3, 1)
