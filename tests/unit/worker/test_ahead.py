"""Exchanges sent ahead of work: what they claim is ours from then on, answered or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial

import pytest

from tests.support.waiting import until
from tests.unit.worker.consumers import QUEUE, Bench
from tests.unit.worker.jobs import Source
from tidework.backoff import Backoff
from tidework.broker.documents import MARKER
from tidework.errors import BrokerFullError, StaleRequestError
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import ExchangeReply, ExchangeRequest
from tidework.model.outcome import Outcome
from tidework.testing.memory.broker import MemoryBroker


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    found = Bench(slots=2, lease=timedelta(seconds=3))
    found.start()
    await until(lambda: found.broker.waits > 0)
    yield found
    await found.stop()


async def test_a_job_that_comes_is_claimed_without_another_request(bench: Bench) -> None:
    before = len(bench.broker.requests)

    await bench.enqueue("a")
    await bench.wait_sent(1)

    assert bench.broker.requests[before:] == []
    (sent,) = bench.broker.ahead
    assert (sent.want, sent.most_held) == (2, 2)
    assert (await bench.job("a")).state is JobState.RUNNING


async def test_jobs_come_that_way_as_long_as_there_are_places(bench: Bench) -> None:
    for name in "ab":
        await bench.enqueue(name)
        await until(partial(bench.consumer.held.__contains__, name))
    await bench.enqueue("c")
    await until(lambda: len(bench.broker.ahead) >= 3)

    assert (await bench.job("c")).state is JobState.READY
    assert sorted(bench.consumer.held) == ["a", "b"]
    assert not bench.consumer.starved.is_set(), "it waits for a place now, not for work"


async def test_an_end_between_makes_room(bench: Bench) -> None:
    await bench.enqueue("a")
    await bench.wait_sent(1)
    bench.end(1)
    await until(lambda: not bench.consumer.held)
    before = len(bench.broker.requests)

    await bench.enqueue("b")
    await bench.wait_sent(1)

    assert bench.broker.requests[before:] == [], "the wait of before served"


@pytest.mark.parametrize("made", [True, False])
async def test_one_that_was_not_answered_is_sent_again_until_it_is(
    bench: Bench, made: bool
) -> None:
    bench.broker.mute, bench.broker.away = made, not made
    await bench.enqueue("a")
    await until(lambda: len(bench.broker.ahead) >= 3)
    assert all(sent == bench.broker.ahead[0] for sent in bench.broker.ahead)

    bench.broker.mute = bench.broker.away = False

    await bench.wait_sent(1)
    assert (await bench.broker.stats(QUEUE)).counters["claimed"] == 1
    assert list(bench.consumer.held) == ["a"]


async def test_where_waiting_is_refused_what_was_claimed_behind_it_does_not_wait(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full server refuses the wait, and makes the exchange that follows it."""
    bench.inbox._backoffs = (Backoff(first=timedelta(hours=1), most=timedelta(hours=1)), Backoff())

    async def refuse(
        queue: QueueName, timeout: timedelta, request: ExchangeRequest
    ) -> tuple[bytes | None, ExchangeReply | None]:
        await MemoryBroker.enqueue(bench.broker, queue, [Job("a", "t", {})])
        await bench.broker.exchange(queue, request)
        raise BrokerFullError("full for a test")

    monkeypatch.setattr(bench.broker, "wait_then_exchange", refuse)
    await bench.broker.put_document(QUEUE, MARKER)  # what it waited for until now

    await bench.wait_sent(1)

    assert list(bench.consumer.held) == ["a"]


async def test_what_came_in_the_last_moment_is_given_back(bench: Bench) -> None:
    bench.broker.mute = True
    await bench.enqueue("a")
    await until(lambda: len(bench.broker.ahead) >= 1)
    bench.tasks[1].cancel()
    bench.broker.mute = False

    bench.consumer.drain()
    await bench.inbox.end()

    await until(lambda: not bench.consumer.held)
    found = await bench.job("a")
    assert (found.state, found.attempt, found.releases) == (JobState.READY, 0, 1)
    assert bench.broker.ahead[-1].want == 0


async def test_at_the_end_one_that_was_never_made_claims_nothing(bench: Bench) -> None:
    bench.tasks[1].cancel()
    await asyncio.wait([bench.tasks[1]])
    bench.consumer.drain()
    await bench.enqueue("a")

    await bench.inbox.end()

    assert (await bench.job("a")).deliveries == 0
    assert bench.broker.ahead[-1].want == 0


async def test_who_stood_still_asks_whether_it_is_still_ours(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = bench.clock.monotonic
    shift = 0.0
    monkeypatch.setattr(bench.clock, "monotonic", lambda: real() + shift)
    taken = QueueName("test", "q")

    async def stand_still(request: ExchangeRequest) -> None:
        nonlocal shift
        if shift:
            return
        shift = 60.0
        state = bench.broker._queues[taken]
        state.entries["a"].state = JobState.READY  # its lease ran out, others may have it

    bench.broker.after_ahead = stand_still
    await bench.enqueue("a")
    await until(lambda: len(bench.broker.ahead) >= 2)

    assert bench.broker.ahead[0] == bench.broker.ahead[1]
    await until(lambda: len(bench.broker.ahead) >= 3)


async def test_an_answer_of_another_life_ends_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = bench.inbox._behind_wait
    ahead._unanswered = ExchangeRequest("w.1", 1, 1, woken=True, most_held=1)

    async def refuse(queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        raise StaleRequestError("later ones were answered")

    monkeypatch.setattr(bench.broker, "exchange", refuse)
    await ahead.close()

    assert not ahead.is_unanswered
    assert bench.numbers.redis_errors["StaleRequestError"] == 1


async def test_a_job_whose_place_was_taken_goes_to_others_at_once(bench: Bench) -> None:
    rival = Source(1)
    bench.pool.add_source(rival)
    rival.add("x", "y")
    bench.pool.run()
    before = len(bench.broker.requests)

    await bench.enqueue("a")

    await until(lambda: any(r.settlements for r in bench.broker.requests[before:]))
    (given_back,) = [s for r in bench.broker.requests[before:] for s in r.settlements]
    expected = Outcome.release(reason="no place was free for it in this worker")
    assert (given_back.id, given_back.outcome) == ("a", expected)
    assert not bench.consumer.starved.is_set(), "whoever has a place is to be woken"


async def test_nothing_is_sent_ahead_without_a_place(bench: Bench) -> None:
    assert bench.consumer.compose_behind_wait() is not None
    for change in ("draining", "cordoned", "paused"):
        setattr(bench.consumer, change, True)
        assert bench.consumer.compose_behind_wait() is None
        setattr(bench.consumer, change, False)
    rival = Source(1)
    bench.pool.add_source(rival)
    rival.add("x", "y")
    bench.pool.run()
    assert bench.consumer.compose_behind_wait() is None


async def test_the_sweep_that_rests_is_woken_by_documents(bench: Bench) -> None:
    await until(lambda: bench.inbox._seldom)
    state = bench.broker._queues[QUEUE]
    state.intake.append(b'{"id": "left", "task": "t"}')
    bench.consumer.on_work()
    await until(lambda: not bench.inbox._seldom)
