"""A write under `replica` or `fsync` is acknowledged only when it is as durable as that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from tests.support.servers import ValkeyServer, redis_binary, replica_of, wait_until_linked
from tidework.broker.connection.transport import AsyncTransport, BlockingTransport, Call, drive
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.broker.scripts import load_script
from tidework.errors import BrokerRefusedError, NotDurableError
from tidework.model.durability import Durability
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState

QUEUE = QueueName("shop", "emails")
SOON = timedelta(milliseconds=300)


def take_term() -> Call:
    script = load_script("take_term")
    return Call(script, script.keys_of(QUEUE), script.argv({}))


def term_at(server: ValkeyServer) -> bytes | None:
    with server.client() as client:
        found: bytes | None = client.get(f"tw1:{{{QUEUE}}}:term")
        return found


@pytest.fixture
def primary() -> Iterator[ValkeyServer]:
    with ValkeyServer() as found:
        yield found


@pytest.fixture
def replica(primary: ValkeyServer) -> Iterator[ValkeyServer]:
    with replica_of(primary) as found:
        wait_until_linked(primary)
        yield found


@pytest.fixture
async def transport(primary: ValkeyServer) -> AsyncIterator[AsyncTransport]:
    found = AsyncTransport(primary.url)
    yield found
    await found.close()


@pytest.fixture
async def hasty(primary: ValkeyServer) -> AsyncIterator[AsyncTransport]:
    """Waits for no more than a moment."""
    found = AsyncTransport(primary.url, durable_within=SOON)
    yield found
    await found.close()


async def test_what_a_replica_acknowledged_survives_its_promotion_and_nothing_else_is_promised(
    primary: ValkeyServer,
    replica: ValkeyServer,
    transport: AsyncTransport,
    hasty: AsyncTransport,
) -> None:
    assert await transport.run(take_term(), Durability.REPLICA) == 1
    replica.freeze()
    with pytest.raises(NotDurableError, match=r"by 0 of 1 replicas.*request is safe") as found:
        await hasty.run(take_term(), Durability.REPLICA)
    assert (found.value.acknowledged, found.value.wanted) == (0, 1)
    assert term_at(primary) == b"2"

    primary.kill()
    replica.thaw()

    with replica.client() as client:
        client.replicaof("NO", "ONE")
    promoted = AsyncTransport(replica.url)
    # What was not acknowledged may be there nevertheless: the link had it on its way.
    assert await promoted.run(take_term()) in (2, 3)
    await promoted.close()


async def test_what_never_reached_the_replica_was_not_acknowledged(
    primary: ValkeyServer, replica: ValkeyServer, transport: AsyncTransport, hasty: AsyncTransport
) -> None:
    assert await transport.run(take_term(), Durability.REPLICA) == 1
    with replica.client() as client:
        client.replicaof("NO", "ONE")

    with pytest.raises(NotDurableError):
        await hasty.run(take_term(), Durability.REPLICA)

    assert (term_at(primary), term_at(replica)) == (b"2", b"1")


async def test_the_same_request_again_is_acknowledged_once_the_replica_is_back(
    replica: ValkeyServer, transport: AsyncTransport, hasty: AsyncTransport
) -> None:
    broker = RedisBroker(transport)
    term = await broker.take_term(QUEUE)
    await broker.configure(QUEUE, term, Durability.REPLICA)
    await broker.enqueue(QUEUE, [Job("a", "t", {})])
    replica.freeze()
    with pytest.raises(NotDurableError):
        await RedisBroker(hasty).enqueue(QUEUE, [Job("b", "t", {})])
    with pytest.raises(NotDurableError):
        await RedisBroker(hasty).enqueue(QUEUE, [Job("b", "t", {})])

    replica.thaw()
    await broker.enqueue(QUEUE, [Job("b", "t", {})])

    assert (await broker.stats(QUEUE)).states[JobState.READY] == 2
    with replica.client() as client:
        assert client.hlen(f"tw1:{{{QUEUE}}}:jobs") == 2


@pytest.mark.parametrize("durability", [Durability.REPLICA, Durability.FSYNC])
async def test_a_script_that_the_server_forgot_is_as_durable(
    primary: ValkeyServer,
    replica: ValkeyServer,
    transport: AsyncTransport,
    durability: Durability,
) -> None:
    for term in (1, 2):
        with primary.client() as client:
            client.script_flush()
        assert await transport.run(take_term(), durability) == term
    replica.freeze()
    with primary.client() as client:
        client.script_flush()
    hasty = AsyncTransport(primary.url, durable_within=SOON)
    if durability is Durability.REPLICA:
        with pytest.raises(NotDurableError):
            await hasty.run(take_term(), durability)
    assert term_at(primary) == (b"3" if durability is Durability.REPLICA else b"2")
    await hasty.close()


def test_a_program_without_an_event_loop_waits_for_it_too(
    primary: ValkeyServer, replica: ValkeyServer
) -> None:
    patient = BlockingTransport(primary.url)
    hasty = BlockingTransport(primary.url, durable_within=SOON)
    for durability in Durability:
        drive(patient.run(take_term(), durability))
    replica.freeze()
    with pytest.raises(NotDurableError):
        drive(hasty.run(take_term(), Durability.REPLICA))
    for each in (patient, hasty):
        drive(each.close())


async def test_a_server_that_cannot_sync_is_refused_before_anything_is_stored() -> None:
    with ValkeyServer(None, "--appendonly", "no") as server:
        transport = AsyncTransport(server.url)
        with pytest.raises(BrokerRefusedError, match=r"keeps no append-only file.*appendonly yes"):
            await transport.run(take_term(), Durability.FSYNC)
        assert term_at(server) is None
        with server.client() as client:
            client.config_set("appendonly", "yes")
        assert await transport.run(take_term(), Durability.FSYNC) == 1
        with server.client() as client:
            client.config_set("appendonly", "no")
        with pytest.raises(BrokerRefusedError, match="stored this and refuses to say how durably"):
            await transport.run(take_term(), Durability.FSYNC)
        await transport.close()


async def test_redis_without_waitaof_is_refused_before_anything_is_stored() -> None:
    binary = redis_binary()
    if binary is None:
        pytest.skip("redis-server is not on the PATH")
    with ValkeyServer(binary) as server:
        transport = AsyncTransport(server.url)
        with server.client() as client:
            version = client.info("server")["redis_version"]
        if version >= "7.2":
            pytest.skip(f"redis-server {version} has WAITAOF")
        with pytest.raises(BrokerRefusedError, match=r"has no WAITAOF.*durability to replica"):
            await transport.run(take_term(), Durability.FSYNC)
        assert term_at(server) is None
        await transport.close()


async def test_a_user_who_may_not_wait_is_told_so(primary: ValkeyServer) -> None:
    with primary.client() as client:
        client.execute_command("ACL", "SETUSER", "worker", "on", ">secret", "~*", "+@all", "-wait")
    url = primary.url.replace("redis://", "redis://worker:secret@")
    transport = AsyncTransport(url)
    with pytest.raises(BrokerRefusedError, match="allow WAIT to its user"):
        await transport.run(take_term(), Durability.REPLICA)
    await transport.close()


async def test_many_writes_wait_side_by_side(
    primary: ValkeyServer, replica: ValkeyServer, transport: AsyncTransport
) -> None:
    await transport.run(take_term())
    terms = await asyncio.gather(
        *(transport.run(take_term(), Durability.REPLICA) for _ in range(100))
    )
    assert sorted(terms) == list(range(2, 102))
