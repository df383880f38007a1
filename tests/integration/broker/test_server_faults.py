"""Redis dies, stands still, forgets: nobody's live job is reaped, nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from datetime import timedelta

import pytest

from tests.support.servers import SURE, ValkeyServer
from tests.support.waiting import until
from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.errors import BrokerUnavailableError
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import (
    ClaimedJob,
    ExchangeReply,
    ExchangeRequest,
    QueueLimits,
    Settlement,
)
from tidework.model.outcome import Outcome

QUEUE = QueueName("faults", "q")
LEASE = timedelta(seconds=1)


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer(None, *SURE) as found:
        yield found


@pytest.fixture
async def broker(server: ValkeyServer) -> AsyncIterator[RedisBroker]:
    found = connect(server.url, QueueLimits(lease=LEASE))
    yield found
    await found.close()


async def claim(broker: RedisBroker, count: int) -> list[ClaimedJob]:
    await broker.enqueue(QUEUE, [Job(f"j{i}", "t", {}) for i in range(count)])
    return list((await broker.exchange(QUEUE, ExchangeRequest("w", 1, count))).claimed)


async def until_it_answers(broker: RedisBroker) -> None:
    await until(lambda: broker.stats(QUEUE), errors=(BrokerUnavailableError,))


async def reap(broker: RedisBroker) -> int:
    return (await broker.upkeep(QUEUE)).reaped


async def expect_that_live_jobs_survive(broker: RedisBroker, held: list[ClaimedJob]) -> None:
    assert (await broker.upkeep(QUEUE)).reaped == 0
    leases = [(found.id, found.token) for found in held]
    assert (await broker.renew(QUEUE, "w", leases)).lost == ()
    done = tuple(Settlement(found.id, found.token, Outcome.complete()) for found in held)
    reply = await broker.exchange(QUEUE, ExchangeRequest("w", 2, 1, done))
    assert reply.refused == ()
    stats = await broker.stats(QUEUE)
    assert stats.states[JobState.SUCCEEDED] == len(held)
    assert stats.counters.get("lost", 0) == 0


async def test_a_killed_server_keeps_what_it_acknowledged_and_spares_live_jobs(
    server: ValkeyServer, broker: RedisBroker
) -> None:
    held = await claim(broker, 8)
    await broker.upkeep(QUEUE)
    await broker.enqueue(QUEUE, [Job(f"more{i}", "t", {}) for i in range(500)])
    server.kill()
    with pytest.raises(BrokerUnavailableError):
        await broker.stats(QUEUE)
    await asyncio.sleep(LEASE.total_seconds() * 1.2)  # the outage is longer than a lease
    server.restart()
    await until_it_answers(broker)
    assert (await broker.stats(QUEUE)).states[JobState.READY] == 500
    await expect_that_live_jobs_survive(broker, held)


async def test_a_server_that_stood_still_spares_live_jobs(
    server: ValkeyServer, broker: RedisBroker
) -> None:
    held = await claim(broker, 8)
    await broker.upkeep(QUEUE)
    server.freeze()
    await asyncio.sleep(3.5)  # longer than the lease and than any gap that passes for ordinary
    server.thaw()
    await until_it_answers(broker)
    await expect_that_live_jobs_survive(broker, held)


async def test_after_the_stand_still_dead_workers_are_reaped(
    server: ValkeyServer, broker: RedisBroker
) -> None:
    await claim(broker, 3)
    await broker.upkeep(QUEUE)
    server.kill()
    server.restart()
    await until_it_answers(broker)
    reaped = 0
    while reaped < 3:
        reaped += await until(lambda: reap(broker), "leases expire")
    assert (await broker.stats(QUEUE)).states[JobState.READY] == 3


async def test_requests_that_lay_in_the_sockets_of_a_frozen_server_count_once(
    server: ValkeyServer,
) -> None:
    """Their callers gave them up and repeated them; all copies arrive in the moment of the thaw."""
    # Leases that outlast a slow machine: nothing is to be reaped meanwhile.
    limits = QueueLimits(lease=timedelta(minutes=1))
    broker = connect(server.url, limits)
    await broker.enqueue(QUEUE, [Job(f"j{i}", "t", {}) for i in range(8)])
    await broker.exchange(QUEUE, ExchangeRequest("other", 1, 1))
    await broker.cancel(QUEUE, "j7")

    def requests(broker: RedisBroker) -> list[Awaitable[object]]:
        return [
            broker.exchange(QUEUE, ExchangeRequest("w", 1, 4)),
            broker.enqueue(QUEUE, [Job("new", "t", {})]),
            broker.cancel(QUEUE, "j6"),
        ]

    # A connection for each copy has to be there: one that is made anew waits for the server.
    others = [connect(server.url, limits) for _ in range(3)]
    for other in others:
        await asyncio.gather(*(other.open_queue(QUEUE) for _ in range(3)))
    server.freeze()
    for other in others:
        sent = [asyncio.ensure_future(request) for request in requests(other)]
        await asyncio.wait(sent, timeout=0.3)
        for request in sent:
            request.cancel()
        await asyncio.gather(*sent, return_exceptions=True)
    server.thaw()
    reply = (await asyncio.gather(*requests(broker)))[0]

    stats = await broker.stats(QUEUE)
    assert stats.counters["repeated"] > 0, "the copies arrived"
    assert isinstance(reply, ExchangeReply)
    assert len(reply.claimed) == 4
    assert stats.counters["claimed"] == 5
    assert stats.counters["enqueued"] == 9
    assert stats.counters["cancelled"] == 2
    states = (JobState.READY, JobState.RUNNING, JobState.CANCELLED)
    assert [stats.states[state] for state in states] == [2, 5, 2]
    for other in (broker, *others):
        await other.close()


async def test_a_document_survives_the_death_of_its_taker(
    server: ValkeyServer, broker: RedisBroker
) -> None:
    with server.client() as foreign:
        foreign.lpush(f"tw1:{{{QUEUE}}}:inbox", b'{"task":"t"}')
    assert await broker.wait_for_document(QUEUE, timedelta(seconds=5)) == b'{"task":"t"}'
    await broker.close()
    other = connect(server.url)
    assert await other.stranded(QUEUE, 10) == (b'{"task":"t"}',)
    assert (await other.stats(QUEUE)).inbox == 1
    await other.close()


async def test_tombstones_are_removed_in_bounded_numbers(
    server: ValkeyServer, broker: RedisBroker
) -> None:
    await broker.open_queue(QUEUE)
    key = f"tw1:{{{QUEUE}}}:tombstones"
    with server.client() as client:
        client.zadd(key, {f"j{i}": 1 + i for i in range(5000)})
        await broker.upkeep(QUEUE)
        assert 0 < client.zcard(key) <= 4000
        for _ in range(5):
            await broker.upkeep(QUEUE)
        assert client.zcard(key) == 0


async def test_a_clock_that_is_set_back_does_not_keep_the_jobs_of_the_dead(
    server: ValkeyServer, broker: RedisBroker
) -> None:
    await claim(broker, 1)
    hour = 3_600_000
    tag = f"tw1:{{{QUEUE}}}"
    with server.client() as client:
        # As if all of this had been written by a clock that went an hour ahead of this one.
        client.hincrby(f"{tag}:guard", "seen", hour)
        client.hset(f"{tag}:guard", "hold", int(client.hget(f"{tag}:guard", "seen") or 0))
        client.zincrby(f"{tag}:leases", hour, "j0")

    assert (await broker.upkeep(QUEUE)).reaped == 0, "it has its lease still"
    await until(lambda: reap(broker), "its lease expires")

    record = await broker.get_job(QUEUE, "j0")
    assert record is not None
    assert (record.state, record.losses) == (JobState.READY, 1)
