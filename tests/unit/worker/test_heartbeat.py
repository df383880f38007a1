"""The heartbeat brings requests for stacks, and answers them, whatever gets lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.support.waiting import until
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


class BeatingWorker:
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
        return await until(lambda: self.broker.stacks(queue, WORKER), "an answer")


@pytest.fixture
async def worker() -> AsyncIterator[BeatingWorker]:
    found = BeatingWorker()
    running = asyncio.ensure_future(found.beat.loop.run())
    await until(lambda: found.broker.beats == 2)
    yield found
    found.beat.loop.stop()
    await running


async def test_a_request_is_answered_with_the_next_report(worker: BeatingWorker) -> None:
    number = await worker.ask()
    await until(lambda: worker.reports.asked == 1)

    worker.reports.make(text="a stack")

    assert await worker.answer() == StacksAnswer(number, {"text": "a stack"})
    assert await worker.broker.stacks(TWO, WORKER) is None
    await worker.beat_again()
    assert worker.broker.answers == 1, "once is enough"


async def test_one_report_is_asked_for_until_it_is_there(worker: BeatingWorker) -> None:
    await worker.ask()
    await until(lambda: worker.reports.asked == 1)

    await worker.beat_again()

    assert worker.reports.asked == 1


async def test_an_answer_whose_reply_is_lost_is_sent_again(worker: BeatingWorker) -> None:
    worker.broker.losses = 2
    number = await worker.ask()
    await until(lambda: worker.reports.asked == 1)
    before = worker.broker.beats

    worker.reports.make(text="a stack")
    await until(lambda: not worker.broker.losses and worker.broker.beats > before + 4)

    assert await worker.answer() == StacksAnswer(number, {"text": "a stack"})
    assert worker.reports.asked == 1
    assert not (await worker.broker.renew(ONE, WORKER, [])).stacks_asked


async def test_whoever_asks_in_another_queue_meanwhile_shares_the_report(
    worker: BeatingWorker,
) -> None:
    await worker.ask()
    await worker.ask(TWO)
    await until(lambda: worker.reports.asked == 2)

    worker.reports.make(text="a stack")

    assert (await worker.answer()).document == (await worker.answer(TWO)).document


async def test_a_request_after_an_answer_gets_a_report_of_its_own(worker: BeatingWorker) -> None:
    await worker.ask()
    await until(lambda: worker.reports.asked == 1)
    worker.reports.make(text="the first")
    await worker.answer()

    number = await worker.ask()
    await until(lambda: worker.reports.asked == 2)
    worker.reports.make(text="the second")

    async def is_answered() -> bool:
        return (await worker.answer()).number >= number

    await until(is_answered)
    assert (await worker.answer()).document == {"text": "the second"}


async def test_a_report_that_nobody_waits_for_brings_no_beat(worker: BeatingWorker) -> None:
    before = worker.broker.beats

    worker.reports.make(text="for the log alone")
    await asyncio.sleep(0)

    assert worker.broker.beats == before
