"""An inbox without workers: upkeep takes in what lies there, so that nobody is started for it."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from tidework.clock import ManualClock
from tidework.errors import BrokerFullError, BrokerRefusedError
from tidework.intake import BATCH
from tidework.maintenance.upkeep import SWEEP_EVERY, Upkeep
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.testing.memory.broker import MemoryBroker

QUEUE = QueueName("shop", "emails")
HOUR = timedelta(hours=1)
FAR = 4_000_000_000


class KeptQueue:
    """A queue, and upkeep of it."""

    def __init__(self, *, sweep_every: timedelta = SWEEP_EVERY) -> None:
        self.clock = ManualClock(datetime(2026, 1, 5, 10, tzinfo=UTC))
        self.broker = MemoryBroker(self.clock)
        self.upkeep = Upkeep(self.broker, lambda: [QUEUE], sweep_every=sweep_every)

    async def put(self, *raws: bytes) -> None:
        for raw in raws:
            await self.broker.put_document(QUEUE, raw)

    async def rounds(self, number: int) -> None:
        for _ in range(number):
            self.clock.advance(await self.upkeep.tick())

    async def backlog(self) -> int:
        return (await self.broker.gather(QUEUE, horizon=HOUR)).backlog


async def test_what_needs_no_worker_leaves_the_backlog() -> None:
    """Due in years, known already, no job at all: a queue of such documents goes to zero."""
    kept = KeptQueue()
    late = b'{"id":"late","task":"t","available_at":%d}' % FAR
    await kept.put(late, late, b'{"id":"order-9","task":7}', b"nonsense")
    assert await kept.backlog() == 4

    await kept.rounds(2)

    assert await kept.backlog() == 0
    stats = await kept.broker.stats(QUEUE)
    assert (stats.states[JobState.SCHEDULED], stats.states[JobState.DEAD], stats.inbox) == (1, 2, 0)
    letter = await kept.broker.get_job(QUEUE, "order-9")
    assert letter is not None
    assert letter.state is JobState.DEAD


async def test_a_document_that_a_worker_takes_at_once_is_left_to_it() -> None:
    kept = KeptQueue()
    await kept.put(b'{"id":"a","task":"t"}')

    await kept.rounds(1)

    assert await kept.broker.get_job(QUEUE, "a") is None


async def test_many_are_taken_in_by_batches() -> None:
    kept = KeptQueue()
    await kept.put(*(b'{"id":"d%d","task":"t"}' % number for number in range(3 * BATCH)))

    await kept.rounds(1)
    assert await kept.upkeep.tick() < timedelta(seconds=1), "there are more"
    assert (await kept.broker.stats(QUEUE)).inbox == 2 * BATCH
    await kept.rounds(2)

    assert (await kept.broker.stats(QUEUE)).states[JobState.READY] == 3 * BATCH
    assert kept.upkeep.counters.taken_in == 3 * BATCH


async def test_what_a_dead_worker_had_taken_is_found() -> None:
    kept = KeptQueue(sweep_every=timedelta(0))
    await kept.put(b'{"id":"a","task":"t"}')
    await kept.broker.wait_for_document(QUEUE, HOUR)

    await kept.rounds(4)

    assert await kept.broker.get_job(QUEUE, "a") is not None
    assert (await kept.broker.stats(QUEUE)).inbox == 0


async def test_on_a_full_server_no_more_than_a_batch_waits_as_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = KeptQueue()
    intake = kept.broker.intake

    async def let_in(*given: object, full: bool = False, **named: object) -> tuple[bytes, ...]:
        if not full:
            raise BrokerFullError("full")
        return await intake(*given, full=full, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(kept.broker, "intake", let_in)
    await kept.put(*(b'{"id":"d%d","task":"t"}' % number for number in range(3 * BATCH)))

    await kept.rounds(20)

    stats = await kept.broker.stats(QUEUE)
    assert (stats.states[JobState.READY], stats.inbox) == (BATCH, 2 * BATCH)


async def test_an_inbox_in_trouble_is_told_once_and_keeps_nothing_else_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept = KeptQueue()

    async def refuse(*_: object, **__: object) -> tuple[bytes, ...]:
        raise BrokerRefusedError("no right to LMOVE")

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(kept.broker, "intake", refuse)
        await kept.put(b'{"id":"a","task":"t"}')
        await kept.rounds(5)
        await asyncio.sleep(0)
    (record,) = caplog.records
    assert record.getMessage() == (
        "documents of queue shop/emails are not taken in: no right to LMOVE"
    )
    assert kept.upkeep.counters.failures == 0

    await kept.rounds(1)

    assert await kept.broker.get_job(QUEUE, "a") is not None
