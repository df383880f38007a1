"""The heartbeat brings requests for stacks, and answers them, whatever gets lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.unit.worker.consumers import until
from tests.unit.worker.reporter import Reporter
from tidework.clock import SystemClock
from tidework.errors import BrokerUnavailableError
from tidework.metrics import WorkerNumbers
from tidework.model.backlog import Presence, StacksAnswer
from tidework.model.identity import QueueName
from tidework.testing.memory.broker import MemoryBroker
from tidework.worker.heartbeat import Heartbeat
from tidework.worker.queue.job_log import JobLog

ONE, TWO = QueueName("test", "one"), QueueName("test", "two")
WORKER = "w.1"


class Forgetful(MemoryBroker):
    """Loses the replies of beats that answer, as often as ``losses`` says."""

    losses = 0
    beats = 0
    answers = 0

    async def beat(
        self,
        queue: QueueName,
        presence: Presence,
        *,
        ttl: timedelta,
        stacks: StacksAnswer | None = None,
    ) -> int:
        found = await super().beat(queue, presence, ttl=ttl, stacks=stacks)
        self.beats += 1
        self.answers += stacks is not None
        if stacks is not None and self.losses:
            self.losses -= 1
            raise BrokerUnavailableError("the reply is lost")
        return found


class Bench:
    """A worker of two queues that beats."""

    def __init__(self) -> None:
        self.broker = Forgetful()
        self.reports = Reporter()
        numbers, clock = WorkerNumbers("1", 1), SystemClock()
        queues = [(queue, JobLog(queue.name, numbers, clock)) for queue in (ONE, TWO)]
        self.beat = Heartbeat(self.broker, WORKER, queues, dict, self.reports, numbers, clock)

    async def ask(self, queue: QueueName = ONE) -> int:
        """From outside; the next beat comes at once, as after a renewal."""
        number = await self.broker.ask_stacks(queue, WORKER)
        assert number is not None
        self.beat.loop.nudge()
        return number

    async def beat_again(self) -> None:
        """To both queues."""
        before = self.broker.beats
        self.beat.loop.nudge()
        await until(lambda: self.broker.beats >= before + 2)

    async def answer(self, queue: QueueName = ONE) -> StacksAnswer:
        """Wait for it."""
        async with asyncio.timeout(10):
            while (found := await self.broker.stacks(queue, WORKER)) is None:
                await asyncio.sleep(0.002)
        return found


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    found = Bench()
    running = asyncio.ensure_future(found.beat.loop.run())
    await until(lambda: found.broker.beats == 2)
    yield found
    found.beat.loop.stop()
    await running


async def test_a_request_is_answered_with_the_next_report(bench: Bench) -> None:
    number = await bench.ask()
    await until(lambda: bench.reports.asked == 1)

    bench.reports.make(text="a stack")

    assert await bench.answer() == StacksAnswer(number, {"text": "a stack"})
    assert await bench.broker.stacks(TWO, WORKER) is None
    await bench.beat_again()
    assert bench.broker.answers == 1, "once is enough"


async def test_one_report_is_asked_for_until_it_is_there(bench: Bench) -> None:
    await bench.ask()
    await until(lambda: bench.reports.asked == 1)

    await bench.beat_again()

    assert bench.reports.asked == 1


async def test_an_answer_whose_reply_is_lost_is_sent_again(bench: Bench) -> None:
    bench.broker.losses = 2
    number = await bench.ask()
    await until(lambda: bench.reports.asked == 1)
    before = bench.broker.beats

    bench.reports.make(text="a stack")
    await until(lambda: not bench.broker.losses and bench.broker.beats > before + 4)

    assert await bench.answer() == StacksAnswer(number, {"text": "a stack"})
    assert bench.reports.asked == 1
    assert not (await bench.broker.renew(ONE, WORKER, [])).stacks_asked


async def test_whoever_asks_in_another_queue_meanwhile_shares_the_report(bench: Bench) -> None:
    await bench.ask()
    await bench.ask(TWO)
    await until(lambda: bench.reports.asked == 2)

    bench.reports.make(text="a stack")

    assert (await bench.answer()).document == (await bench.answer(TWO)).document


async def test_a_request_after_an_answer_gets_a_report_of_its_own(bench: Bench) -> None:
    await bench.ask()
    await until(lambda: bench.reports.asked == 1)
    bench.reports.make(text="the first")
    await bench.answer()

    number = await bench.ask()
    await until(lambda: bench.reports.asked == 2)
    bench.reports.make(text="the second")

    async with asyncio.timeout(10):
        while (await bench.answer()).number < number:
            await asyncio.sleep(0.002)
    assert (await bench.answer()).document == {"text": "the second"}


async def test_a_report_that_nobody_waits_for_brings_no_beat(bench: Bench) -> None:
    before = bench.broker.beats

    bench.reports.make(text="for the log alone")
    await asyncio.sleep(0)

    assert bench.broker.beats == before
