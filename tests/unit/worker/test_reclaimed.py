"""A worker that claims again what it lost: the old hold and the new one are not mixed up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from itertools import count

import pytest

from tests.support.waiting import let_turn, until
from tests.unit.worker.consumers import QUEUE, Bench
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.model.lease import ExchangeReply, ExchangeRequest, RenewReply
from tidework.model.outcome import Outcome
from tidework.worker.queue import consumer as consumer_module


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    found = Bench(slots=2)
    found.start()
    yield found
    await found.stop()


async def lose_and_claim_again(bench: Bench) -> None:
    """Job a runs in one slot; its lease is lost and this worker claims it into the other one."""
    await bench.enqueue("a")
    await until(lambda: "a" in bench.consumer.held)
    old = bench.consumer.held["a"]
    link = next(link for link in bench.pool._links.values() if old in link.jobs.values())
    child = next(child for child in bench.orders.children if child.key == link.key)
    bench.begin(child, 1)
    bench.broker._queues[QUEUE].entries["a"].lease_ms = 0
    await bench.broker.upkeep(QUEUE)
    bench.consumer.on_work()
    await until(lambda: bench.consumer.held.get("a") is not old)


async def test_the_old_run_is_stopped(bench: Bench) -> None:
    await lose_and_claim_again(bench)

    assert bench.pool.unreaped_since() is not None
    assert bench.numbers.total("lease_lost") == 1


async def test_an_old_result_that_is_refused_does_not_end_the_new_hold(bench: Bench) -> None:
    await lose_and_claim_again(bench)
    new = bench.consumer.held["a"]
    asked = len(bench.broker.requests)
    old_token = "w.1:1"
    assert new.claimed.token != old_token

    # The old child had ended the job in the moment in which it was killed.
    killed = next(link for link in bench.pool._links.values() if link.killed_at is not None)
    bench.consumer.settle(killed.first, Outcome.complete(), 0.1)
    await until(lambda: len(bench.broker.requests) > asked and not bench.consumer._outbox)
    await until(lambda: bench.consumer._under_way is None)

    assert bench.consumer.held["a"] is new
    assert bench.consumer.leases() == [("a", new.claimed.token)]


async def test_a_renewal_that_was_overtaken_does_not_stop_the_new_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.enqueue("a")
    await until(lambda: "a" in bench.consumer.held)
    first = bench.consumer.held["a"]
    overtaken, answered = asyncio.Event(), asyncio.Event()
    renew = bench.broker.renew

    async def late(
        queue: QueueName, incarnation: str, leases: Sequence[tuple[str, str]]
    ) -> RenewReply:
        await overtaken.wait()
        reply = await renew(queue, incarnation, leases)
        answered.set()
        return reply

    monkeypatch.setattr(bench.broker, "renew", late)
    bench.renewal.loop.nudge()
    await asyncio.sleep(0)
    # Meanwhile it is given back and claimed again, all by this worker.
    link = next(link for link in bench.pool._links.values() if first in link.jobs.values())
    child = next(child for child in bench.orders.children if child.key == link.key)
    child.say(b"")
    bench.begin(child, 1)
    link.jobs.pop(link.first.number)
    bench.consumer.settle(first, Outcome.release(), None)
    bench.pool.on_reports(link)
    await until(lambda: bench.consumer.held.get("a") not in (None, first))
    new = bench.consumer.held["a"]
    overtaken.set()
    await answered.wait()
    await let_turn()

    assert bench.consumer.held.get("a") is new
    assert bench.pool.unreaped_since() is None
    assert bench.numbers.total("lease_lost") == 0


async def test_a_cordon_that_ends_while_no_slot_is_free_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumer_module, "CORDONED_FOR", 0.05)
    bench = Bench(lease=timedelta(seconds=0.6))
    bench.start()
    try:
        await until(bench.consumer.starved.is_set)
        term = await bench.broker.take_term(QUEUE)
        await bench.broker.drain(QUEUE, term, ["w.1"], 1, ttl=timedelta(hours=1))
        await until(lambda: bench.consumer.cordoned)
        # The slot's child is replaced, as after its last job: for a while there is no slot.
        bench.pool.on_child_ended(bench.child.pid, 0)
        await until(lambda: bench.consumer._due_at is None)
        await bench.broker.drain(QUEUE, term, [], 0, ttl=timedelta(hours=1))
        await bench.enqueue("a")

        bench.bring_up(bench.child)

        await bench.wait_sent(1)
        assert (await bench.job("a")).state is JobState.RUNNING
    finally:
        await bench.stop()


async def test_a_reply_older_than_a_lease_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As after SIGSTOP between the request and its reply: others may have the jobs by now."""
    lease = timedelta(milliseconds=200)
    bench = Bench(lease=lease)
    exchange = bench.broker.exchange
    claimed_once = asyncio.Event()
    go_on = asyncio.Event()

    async def late(queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        reply = await exchange(queue, request)
        if reply.claimed and not claimed_once.is_set():
            claimed_once.set()
            await go_on.wait()
        return reply

    monkeypatch.setattr(bench.broker, "exchange", late)
    await bench.enqueue("a")
    bench.start()
    try:
        await asyncio.wait_for(claimed_once.wait(), 10)
        late_at = bench.clock.monotonic() + lease.total_seconds()
        numbers = count(1)

        async def claim_elsewhere() -> tuple[str, ...]:
            reply = await exchange(QUEUE, ExchangeRequest("other.1", next(numbers), 1))
            return tuple(found.id for found in reply.claimed)

        assert await until(claim_elsewhere, "the lease expires") == ("a",)
        # The queue counts whole milliseconds, so its lease may end a little before ours.
        await until(lambda: bench.clock.monotonic() > late_at)
        # The wait at the inbox may have brought it: that exchange is in the other list.
        asked = len(bench.broker.requests) + len(bench.broker.ahead)
        go_on.set()
        await until(lambda: len(bench.broker.requests) + len(bench.broker.ahead) > asked)
        await until(lambda: bench.consumer._under_way is None)

        assert bench.child.jobs() == []
        assert bench.consumer.held == {}
    finally:
        await bench.stop()
