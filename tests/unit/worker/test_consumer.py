"""The claim loop: one exchange at a time, resent unchanged; outcomes are never dropped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.support.waiting import let_turn, until
from tests.unit.worker.consumers import QUEUE, Bench, sequences
from tidework.broker.documents import MARKER
from tidework.model.job import JobState
from tidework.model.lease import ExchangeRequest, RunTimes
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.worker.queue import consumer as consumer_module


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    found = Bench()
    found.start()
    yield found
    await found.stop()


async def state(bench: Bench, name: str, wanted: JobState) -> None:
    async def look() -> bool:
        record = await bench.broker.get_job(QUEUE, name)
        return record is not None and record.state is wanted

    await until(look, f"{name} is {wanted}")


async def test_a_job_is_claimed_run_and_settled(bench: Bench) -> None:
    await bench.enqueue("a")
    await bench.wait_sent(1)
    assert (await bench.job("a")).state is JobState.RUNNING

    bench.end(1, Outcome.complete(b"42"))

    await state(bench, "a", JobState.SUCCEEDED)
    assert (await bench.job("a")).result == 42
    await until(lambda: not bench.consumer.held)
    assert bench.numbers.total("succeeded") == 1


async def test_one_exchange_settles_and_claims(bench: Bench) -> None:
    await bench.enqueue("a", "b")
    await bench.wait_sent(1)
    before = len(bench.broker.requests)

    bench.end(1)
    await bench.wait_sent(1)

    (request,) = bench.broker.requests[before:]
    assert [found.id for found in request.settlements] == ["a"]
    assert request.want == 1
    assert request.served == {"t": RunTimes(1, 0.2, {16: 1})}


async def test_a_failed_exchange_is_sent_again_unchanged(bench: Bench) -> None:
    await bench.enqueue("a", "b")
    await bench.wait_sent(1)
    before = len(bench.broker.requests)
    bench.broker.away = True
    bench.end(1)
    await until(lambda: len(bench.broker.requests) >= before + 3)

    bench.broker.away = False
    await state(bench, "a", JobState.SUCCEEDED)

    sent = bench.broker.requests[before:]
    assert len(set(sequences(sent[:3]))) == 1
    assert all(request is sent[0] for request in sent[:3])
    assert bench.numbers.redis_errors["BrokerUnavailableError"] >= 3


async def test_a_lost_reply_is_as_if_it_had_come(bench: Bench) -> None:
    await bench.enqueue("a", "b")
    await bench.wait_sent(1)
    bench.broker.mute = True
    before = len(bench.broker.requests)
    bench.end(1)
    await until(lambda: len(bench.broker.requests) >= before + 2)
    bench.broker.mute = False

    await bench.wait_sent(1)
    bench.end(2)
    await state(bench, "b", JobState.SUCCEEDED)

    for name in ("a", "b"):
        assert (await bench.job(name)).deliveries == 1
    assert bench.numbers.total("lease_lost") == 0


async def test_outcomes_that_arrive_meanwhile_go_into_the_next_one() -> None:
    bench = Bench(slots=2)
    bench.start()
    try:
        await bench.enqueue("a", "b")
        for child in bench.orders.children:
            await bench.wait_sent(1, child)
        one, two = bench.orders.children
        before = len(bench.broker.requests)
        bench.broker.away = True
        bench.begin(one, 1)
        bench.finish(one, 1)
        await until(lambda: len(bench.broker.requests) > before)
        bench.begin(two, 1)
        bench.finish(two, 1)
        bench.broker.away = False
        for name in ("a", "b"):
            await state(bench, name, JobState.SUCCEEDED)
    finally:
        await bench.stop()

    sent = bench.broker.requests[before:]
    settled = {r.sequence: [s.id for s in r.settlements] for r in sent if r.settlements}
    assert sorted(settled.values()) == [["a"], ["b"]]
    assert sequences(sent) == sorted(sequences(sent))


async def test_nothing_is_asked_while_no_slot_is_free(bench: Bench) -> None:
    await bench.enqueue("a")
    await bench.wait_sent(1)
    bench.start_job(1)
    before = len(bench.broker.requests)

    await bench.enqueue("b", "c")
    await let_turn()

    assert len(bench.broker.requests) == before
    assert not bench.consumer.starved.is_set()


async def test_a_job_that_becomes_due_is_run_without_a_marker(bench: Bench) -> None:
    await bench.enqueue("a")
    await bench.wait_sent(1)

    bench.end(1, Outcome.retry(JobError("E", "m"), timedelta(milliseconds=50)))

    await bench.wait_sent(1)
    assert (await bench.job("a")).attempt == 2


async def test_an_unknown_task_is_given_back_with_a_delay(bench: Bench) -> None:
    await bench.broker.put_document(QUEUE, b'{"id": "x", "task": "missing"}')

    await state(bench, "x", JobState.SCHEDULED)

    assert (await bench.job("x")).releases == 1
    assert bench.numbers.jobs["released"]["q", "(unknown)"] == 1


async def test_short_jobs_are_claimed_ahead(bench: Bench) -> None:
    bench.pool.places.times.note("t", 0.01)
    await bench.enqueue(*"abcdefghijkl")

    await bench.wait_sent(6)

    assert bench.broker.requests[-1].want == 5, "one came with the wait for work"
    assert len(bench.consumer.held) == 6


async def test_what_waits_too_long_is_given_back(bench: Bench) -> None:
    bench.pool.places.times.note("t", 0.01)
    await bench.enqueue(*"abcdef")
    await bench.wait_sent(6)
    bench.start_job(1)

    # The first job turns out to be slow: those in the pipe come back, then all are released.
    await until(lambda: bench.numbers.total("released") == 5)
    await until(lambda: list(bench.consumer.held) == ["a"])

    assert (await bench.job("b")).state is JobState.READY
    assert (await bench.job("b")).releases == 1
    assert (await bench.job("b")).attempt == 0


async def test_a_job_of_a_killed_child_is_lost_and_those_behind_it_are_not(bench: Bench) -> None:
    bench.pool.places.times.note("t", 0.01)
    await bench.enqueue("a", "b", "c")
    await bench.wait_sent(3)
    bench.start_job(1)
    bench.read()

    bench.pool.on_child_ended(bench.child.pid, -9)
    bench.bring_up(bench.child)
    await bench.wait_sent(2)

    async def is_lost() -> bool:
        return (await bench.job("a")).losses > 0

    await until(is_lost)
    for name in ("b", "c"):
        assert (await bench.job(name)).losses == 0


async def test_a_lost_lease_stops_the_job_and_drops_its_result() -> None:
    bench = Bench(lease=timedelta(milliseconds=300))
    bench.start()
    try:
        await bench.enqueue("a")
        await bench.wait_sent(1)
        bench.start_job(1)
        bench.read()
        entry = bench.broker._queues[QUEUE].entries["a"]
        entry.token = "somebody else's"

        await until(lambda: bench.pool.unreaped_since() is not None)
        bench.pool.on_child_ended(bench.child.pid, -9)

        assert bench.consumer.held == {}
        assert bench.numbers.total("lease_lost") == 1
        assert bench.numbers.total("lost") == 0
    finally:
        await bench.stop()


async def test_a_refused_result_is_counted(bench: Bench) -> None:
    await bench.enqueue("a")
    await bench.wait_sent(1)
    bench.broker._queues[QUEUE].entries["a"].token = "somebody else's"

    bench.end(1)

    await until(lambda: bench.numbers.total("lease_lost") == 1)
    assert bench.consumer.held == {}


async def test_a_running_job_is_cancelled_by_killing_its_child() -> None:
    bench = Bench(lease=timedelta(milliseconds=300))
    bench.start()
    try:
        await bench.enqueue("a")
        await bench.wait_sent(1)
        bench.start_job(1)
        bench.read()

        assert await bench.broker.cancel(QUEUE, "a") == "requested"
        job = bench.consumer.held["a"]
        await until(lambda: job.stopped_at)
        job.stopped_at -= 60
        bench.look()
        assert bench.pool.unreaped_since() is not None
        bench.pool.on_child_ended(bench.child.pid, -9)

        await state(bench, "a", JobState.CANCELLED)
    finally:
        await bench.stop()


async def test_a_job_in_a_pipe_is_cancelled_without_killing_anybody() -> None:
    bench = Bench(lease=timedelta(milliseconds=300))
    bench.start()
    try:
        bench.make_quick()
        await bench.enqueue("a", "b")
        await bench.wait_sent(2)
        bench.start_job(1)

        await bench.broker.cancel(QUEUE, "b")

        await state(bench, "b", JobState.CANCELLED)
        assert bench.pool.unreaped_since() is None
        assert (await bench.job("a")).state is JobState.RUNNING
    finally:
        await bench.stop()


async def test_leases_are_renewed_while_redis_answers_no_exchange() -> None:
    bench = Bench(lease=timedelta(milliseconds=400))
    bench.start()
    try:
        await bench.enqueue("a")
        await bench.wait_sent(1)
        bench.broker.away = True
        bench.end(1)
        leases = bench.broker._queues[QUEUE].entries
        first = leases["a"].lease_ms
        await until(lambda: leases["a"].lease_ms > first + 600)
        bench.broker.away = False

        await state(bench, "a", JobState.SUCCEEDED)
        assert (await bench.job("a")).losses == 0
    finally:
        await bench.stop()


async def test_a_drain_gives_back_what_did_not_start_and_waits_for_what_did(
    bench: Bench,
) -> None:
    bench.pool.places.times.note("t", 0.01)
    await bench.enqueue(*"abcdefgh")
    await bench.wait_sent(6)
    bench.start_job(1)
    bench.read()

    bench.consumer.drain()
    bench.pool.take_back_unstarted()
    await until(lambda: list(bench.consumer.held) == ["a"])
    for name in "bcdef":
        assert (await bench.job(name)).state is JobState.READY
    quiet = asyncio.ensure_future(bench.consumer.wait_quiet())
    await let_turn()
    assert not quiet.done()
    bench.finish(bench.child, 1)
    await asyncio.wait_for(quiet, 10)
    await asyncio.wait_for(bench.consumer.wait_settled(), 10)

    assert (await bench.job("a")).state is JobState.SUCCEEDED
    assert all(request.want == 0 for request in bench.broker.requests[-2:])


async def test_jobs_claimed_in_the_moment_of_the_drain_are_given_back(bench: Bench) -> None:
    bench.consumer.drain()
    stopped = len(bench.broker.requests)
    await bench.enqueue("a")
    request = ExchangeRequest("w.1", 1000, 1)
    reply = await bench.broker.exchange(QUEUE, request)
    bench.consumer._sequence = 1000

    bench.consumer._take_in(request, reply)

    await asyncio.wait_for(bench.consumer.wait_settled(), 10)
    assert (await bench.job("a")).state is JobState.READY
    assert len(bench.broker.requests) > stopped


async def test_an_overdue_due_time_does_not_spin(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_module, "SHORTEST_DUE", 3600.0)
    state_of_queue = bench.broker._queues[QUEUE]
    monkeypatch.setattr(state_of_queue, "next_due", lambda: timedelta(0), raising=False)
    before = len(bench.broker.requests)

    bench.consumer.loop.nudge()
    await let_turn()

    assert len(bench.broker.requests) - before <= 2


async def test_outcome_kinds_are_counted(bench: Bench) -> None:
    error = JobError("E", "m")
    outcomes = [Outcome.bury(error), Outcome.retry(error, timedelta(hours=1)), Outcome.complete()]
    await bench.enqueue("a", "b", "c")
    for number, outcome in enumerate(outcomes, 1):
        await bench.wait_sent(1)
        bench.end(number, outcome)
    await until(lambda: not bench.consumer.held)

    counted = {event: bench.numbers.total(event) for event in ("failed", "retried", "dead")}
    assert counted == {"failed": 2, "retried": 1, "dead": 1}
    assert bench.numbers.total("succeeded") == 1
    assert {o.kind for o in outcomes} == {OutcomeKind.BURY, OutcomeKind.RETRY, OutcomeKind.COMPLETE}


async def test_a_cordoned_worker_leaves_work_and_markers_to_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_module, "CORDONED_FOR", 0.05)
    term = await bench.broker.take_term(QUEUE)
    await until(bench.consumer.starved.is_set)
    hour = timedelta(hours=1)
    await bench.broker.drain(QUEUE, term, ["w.1"], 1, ttl=hour)
    await bench.enqueue("a")
    await until(lambda: bench.consumer.cordoned)
    assert not bench.consumer.starved.is_set()
    asked = len(bench.broker.requests)
    await until(lambda: len(bench.broker.requests) > asked + 1)
    assert (await bench.job("a")).state is JobState.READY
    assert list(bench.broker._queues[QUEUE].inbox) == [MARKER], "somebody else is to be woken"

    await bench.broker.drain(QUEUE, term, [], 0, ttl=hour)

    await bench.wait_sent(1)
    assert not bench.consumer.cordoned


async def test_a_paused_queue_is_left_alone_until_a_marker_says_it_goes_on(bench: Bench) -> None:
    await bench.broker.pause(QUEUE, "")
    await bench.enqueue("a")
    bench.consumer.on_work()
    await until(lambda: bench.consumer.paused)
    asked = len(bench.broker.requests)
    bench.consumer.on_capacity()
    await until(lambda: bench.consumer._under_way is None)
    await asyncio.sleep(0)
    assert len(bench.broker.requests) == asked, "no exchange for what nobody may claim"

    await bench.broker.resume(QUEUE)
    bench.consumer.on_work(woken=True)
    await bench.wait_sent(1)

    assert not bench.consumer.paused
    assert (await bench.job("a")).state is JobState.RUNNING
