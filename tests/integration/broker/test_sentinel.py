"""Sentinels promote a replica: all find the new primary, and what was replicated is there."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.support.sentinels import SERVICE, SentinelProcess, WatchedPair
from tests.support.servers import ValkeyServer, free_port, redis_binary
from tests.support.waiting import until, wait_until
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import RedisBroker, connect, connect_blocking
from tidework.errors import BrokerError, BrokerRefusedError, BrokerUnavailableError
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import ClaimedJob, ExchangeRequest, Settlement
from tidework.model.outcome import Outcome

UNAVAILABLE = (BrokerUnavailableError,)
"""What a worker answers with the same request again."""
QUEUE = QueueName("shop", "emails")
MINUTE = timedelta(minutes=1)


def job(name: str) -> Job:
    return Job(name, "t", {})


def wait_until_replicated(pair: WatchedPair) -> None:
    def offset(server: ValkeyServer, name: str) -> Any:
        with server.client() as client:
            return client.info("replication")[name]

    primary, replica = pair.servers
    wait_until(
        lambda: offset(primary, "master_repl_offset") == offset(replica, "slave_repl_offset"),
        "the replica has everything",
    )


async def go_on(broker: RedisBroker, held: tuple[ClaimedJob, ...]) -> None:
    """The next round of a worker that holds jobs."""
    leases = [(found.id, found.token) for found in held]
    assert (await until(lambda: broker.renew(QUEUE, "w", leases), errors=UNAVAILABLE)).lost == ()
    ended = tuple(Settlement(found.id, found.token, Outcome.complete()) for found in held)
    request = ExchangeRequest("w", 2, 5, ended)
    reply = await until(lambda: broker.exchange(QUEUE, request), errors=UNAVAILABLE)
    assert reply.refused == ()
    assert len(reply.claimed) == 5


@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_a_primary_that_died_is_succeeded_by_its_replica(kind: str) -> None:
    if kind == "redis" and redis_binary() is None:
        pytest.skip("redis-server is not on the PATH")
    with WatchedPair(redis_binary() if kind == "redis" else None) as pair:
        # The first Sentinel of the URL is gone.
        broker = connect(pair.url(first=f"127.0.0.1:{free_port()}"))
        blocking = connect_blocking(pair.url())
        try:
            await broker.enqueue(QUEUE, [job(f"j{number}") for number in range(8)])
            await asyncio.to_thread(lambda: drive(blocking.enqueue(QUEUE, [job("sync")])))
            held = (await broker.exchange(QUEUE, ExchangeRequest("w", 1, 3))).claimed
            assert await broker.wait_for_document(QUEUE, MINUTE) == b"!"
            waiting = asyncio.ensure_future(broker.wait_for_document(QUEUE, MINUTE))
            await asyncio.to_thread(wait_until_replicated, pair)

            pair.servers[0].kill()
            with pytest.raises(BrokerUnavailableError):
                await asyncio.wait_for(waiting, 20)
            with pytest.raises(BrokerUnavailableError):
                await broker.enqueue(QUEUE, [job("lost")])
            await asyncio.to_thread(pair.wait_until_promoted)

            # Nothing was sent to the dead one, so this needs no second call.
            await asyncio.to_thread(lambda: drive(blocking.enqueue(QUEUE, [job("sync2")])))
            await go_on(broker, held)
            stats = await broker.stats(QUEUE)
            assert stats.states[JobState.SUCCEEDED] == 3
            assert (stats.states[JobState.RUNNING], stats.states[JobState.READY]) == (5, 2)
        finally:
            await broker.close()
            drive(blocking.close())


async def test_nobody_stays_with_a_primary_that_stands_still_and_comes_back() -> None:
    with WatchedPair() as pair:
        broker = connect(pair.url())
        old = pair.servers[0]
        try:
            await broker.enqueue(QUEUE, [job("a")])
            assert await broker.wait_for_document(QUEUE, MINUTE) == b"!"
            waiting = asyncio.ensure_future(broker.wait_for_document(QUEUE, MINUTE))
            await asyncio.to_thread(wait_until_replicated, pair)
            old.freeze()
            await asyncio.to_thread(pair.wait_until_promoted)

            await until(lambda: broker.enqueue(QUEUE, [job("b")]), errors=UNAVAILABLE)

            # The wait at the old one would have lasted for more than a minute.
            with pytest.raises(BrokerUnavailableError):
                await asyncio.wait_for(waiting, 20)
            # For some seconds it still thinks that it is the primary.
            old.thaw()
            await broker.enqueue(QUEUE, [job("c")])
            assert (await broker.stats(QUEUE)).states[JobState.READY] == 3
        finally:
            await broker.close()


async def stats_error(url: str) -> BrokerError:
    broker = connect(url)
    try:
        with pytest.raises(BrokerError) as caught:
            await broker.stats(QUEUE)
        return caught.value
    finally:
        await broker.close()


async def test_what_does_not_lead_to_a_primary_is_told_apart() -> None:
    with (
        ValkeyServer() as primary,
        ValkeyServer(None, "--replicaof", f"127.0.0.1 {primary.port}") as replica,
        SentinelProcess(primary.port, more="requirepass hidden") as closed,
        SentinelProcess(replica.port) as misled,
    ):
        open_url = f"redis+sentinel://127.0.0.1:{closed.port}/{SERVICE}?sentinel_password=hidden"
        broker = connect(open_url)
        await broker.enqueue(QUEUE, [job("a")])
        await broker.close()

        unknown = await stats_error(open_url.replace(SERVICE, "other"))
        assert isinstance(unknown, BrokerRefusedError)
        assert "'other'" in str(unknown)
        assert "knows no such service" in str(unknown)

        locked = await stats_error(open_url.replace("=hidden", "=wrong"))
        assert isinstance(locked, BrokerRefusedError)
        assert "sentinel_password" in str(locked)
        assert "=wrong" not in str(locked)

        nobody = await stats_error(f"redis+sentinel://127.0.0.1:{free_port()}/{SERVICE}")
        assert isinstance(nobody, BrokerUnavailableError)

        server = await stats_error(f"redis+sentinel://127.0.0.1:{primary.port}/{SERVICE}")
        assert isinstance(server, BrokerRefusedError)

        between = await stats_error(f"redis+sentinel://127.0.0.1:{misled.port}/{SERVICE}")
        assert isinstance(between, BrokerUnavailableError)
        assert "read-only replica" in str(between)
