"""What jobs say of themselves on its way to the queue: in order, seldom, and before their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest

from tests.support.waiting import until
from tests.unit.worker.consumers import QUEUE, Bench, UnsteadyBroker
from tests.unit.worker.jobs import Source, held
from tidework.errors import BrokerError, BrokerRefusedError, BrokerUnavailableError
from tidework.model.identity import QueueName
from tidework.model.lease import ExchangeReply, ExchangeRequest
from tidework.model.outcome import JobError, Outcome
from tidework.model.progress import ProgressNote
from tidework.worker import frames
from tidework.worker.queue import progress_writer

ERROR = JobError("E", "m")


class TalkedToBroker(UnsteadyBroker):
    """Writes down what comes in which order; ``fault``: what a note meets."""

    def __init__(self) -> None:
        super().__init__()
        self.story: list[str] = []
        self.fault: BrokerError | None = None

    async def note_progress(
        self, queue: QueueName, notes: Sequence[ProgressNote]
    ) -> tuple[str, ...]:
        self.story.append("note")
        if self.fault is not None:
            raise self.fault
        return await super().note_progress(queue, notes)

    async def exchange(self, queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        self.story += ["settle"] * len(request.settlements)
        return await super().exchange(queue, request)


class NotesBench(Bench):
    """One job runs."""

    broker: TalkedToBroker

    def __init__(self) -> None:
        super().__init__(broker=TalkedToBroker())

    def start(self) -> None:
        super().start()
        self.tasks.append(asyncio.ensure_future(self.consumer.notes.loop.run()))

    async def run_job(self) -> None:
        await self.enqueue("a")
        await self.wait_sent(1)
        self.start_job(1)

    def say(self, at: int) -> None:
        """The job's checkpoint stands there."""
        self.child.say(frames.said_frame(1, b"", b'{"":%d}' % at))

    def finish_with(self, outcome: Outcome) -> None:
        self.child.say(frames.ended_frame(1, outcome, 0.1))

    async def stands_at(self) -> object:
        return (await self.broker.checkpoints(QUEUE, "a")).get("")

    async def wait_at(self, place: int) -> None:
        entry = self.broker._open(QUEUE).entries["a"]
        await until(lambda: entry.progress.endswith(b'{"":%d}' % place))

    async def wait_settled(self) -> None:
        await until(lambda: not self.consumer.held)


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NotesBench]:
    """The second write of a queue never comes by itself."""
    monkeypatch.setattr(progress_writer, "EVERY", 3600.0)
    found = NotesBench()
    found.start()
    await found.run_job()
    yield found
    await found.stop()


async def test_the_first_word_is_written_at_once(bench: NotesBench) -> None:
    bench.say(1)

    await bench.wait_at(1)


async def test_of_what_follows_the_last_word_is_written(
    bench: NotesBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_writer, "EVERY", 0.05)
    for place in range(200):
        bench.say(place)

    await bench.wait_at(199)

    assert bench.broker.story.count("note") < 50


@pytest.mark.parametrize(
    "outcome",
    [Outcome.release(timedelta(hours=1)), Outcome.retry(ERROR, timedelta(hours=1))],
    ids=["release", "retry"],
)
async def test_it_is_written_before_the_end_is_settled(bench: NotesBench, outcome: Outcome) -> None:
    bench.say(1)
    await bench.wait_at(1)
    bench.say(2)

    bench.finish_with(outcome)
    await bench.wait_settled()

    assert await bench.stands_at() == 2
    assert bench.broker.story == ["note", "note", "settle"]


async def test_what_an_old_run_says_does_not_stand_for_the_new_one(bench: NotesBench) -> None:
    """Its lease was lost and claimed again by this worker; it was told to end, and has not yet."""
    new = bench.consumer.held["a"]
    old = held("a", source=Source())
    old.said, old.positions = 1, b'{"":99}'
    bench.say(1)
    await bench.wait_at(1)
    bench.say(2)
    await until(lambda: new.said == 2)

    bench.consumer.notes.note(old)
    bench.finish_with(Outcome.release(timedelta(hours=1)))
    await bench.wait_settled()

    assert await bench.stands_at() == 2


async def test_a_dead_process_has_said_what_it_said(bench: NotesBench) -> None:
    bench.say(1)
    await bench.wait_at(1)
    bench.say(2)
    bench.pool.on_child_ended(bench.child.pid, -9)

    await until(lambda: "settle" in bench.broker.story)

    await bench.wait_at(2)
    assert bench.broker.story[:3] == ["note", "note", "settle"]


@pytest.mark.parametrize("outcome", [Outcome.complete(), Outcome.complete(b"7")])
async def test_nothing_is_written_of_a_job_that_succeeded(
    bench: NotesBench, outcome: Outcome
) -> None:
    bench.say(1)
    await bench.wait_at(1)
    bench.say(2)

    bench.finish_with(outcome)
    await bench.wait_settled()

    assert bench.broker.story == ["note", "settle"]
    assert await bench.stands_at() is None


async def test_while_redis_is_away_the_end_waits_with_the_last_word(bench: NotesBench) -> None:
    bench.broker.fault = BrokerUnavailableError("gone for a test")
    bench.say(1)
    bench.say(2)
    bench.finish_with(Outcome.release(timedelta(hours=1)))
    await until(lambda: bench.broker.story.count("note") >= 3)
    assert "settle" not in bench.broker.story

    bench.broker.fault = None
    await bench.wait_settled()

    assert await bench.stands_at() == 2


async def test_a_note_that_is_refused_for_good_does_not_keep_the_end_back(
    bench: NotesBench,
) -> None:
    bench.broker.fault = BrokerRefusedError("no right for a test")
    bench.say(1)
    bench.finish_with(Outcome.release(timedelta(hours=1)))

    await bench.wait_settled()

    assert (await bench.job("a")).releases == 1


async def test_a_lost_lease_ends_the_matter(bench: NotesBench) -> None:
    entry = bench.broker._open(QUEUE).entries["a"]
    entry.token = "somebody:1"
    bench.say(1)

    await until(lambda: "note" in bench.broker.story)
    await until(lambda: not bench.consumer.notes._unwritten)

    assert entry.progress == b""
