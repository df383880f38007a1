"""A Redis Cluster of three servers: every queue is somewhere, and may move or be away."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from tests.support.clusters import ClusterNode, ThreeNodes
from tests.support.servers import ValkeyServer, wait_until_blocked
from tests.support.waiting import until
from tidework.broker.connection.transport import Call, drive
from tidework.broker.redis.redis_broker import RedisBroker, connect, connect_blocking
from tidework.broker.scripts import load_script
from tidework.errors import BrokerRefusedError, BrokerUnavailableError, StaleTermError
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import ExchangeRequest, Settlement
from tidework.model.outcome import Outcome

UNAVAILABLE = (BrokerUnavailableError,)
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreeNodes]:
    """One for the whole module: a test that breaks it mends it."""
    with ThreeNodes() as found:
        yield found


@pytest.fixture
async def broker(cluster: ThreeNodes) -> AsyncIterator[RedisBroker]:
    found = connect(cluster.url())
    yield found
    await found.close()


@pytest.fixture
def queues(cluster: ThreeNodes) -> tuple[QueueName, ...]:
    """One on each server, unused before."""
    namespace = f"t-{secrets.token_hex(4)}"
    return tuple(cluster.queue_on(node, namespace) for node in cluster.nodes)


def job(name: str) -> Job:
    return Job(name, "t", {})


def take_term(queue: QueueName) -> Call:
    script = load_script("take_term")
    return Call(script, script.keys_of(queue), script.argv({}))


async def ready_jobs(broker: RedisBroker, queue: QueueName) -> int:
    return (await broker.stats(queue)).states[JobState.READY]


async def test_queues_of_all_servers_are_served(
    broker: RedisBroker, queues: tuple[QueueName, ...]
) -> None:
    for queue in queues:
        await broker.enqueue(queue, [job("a"), job("b")])
        assert await broker.wait_for_document(queue, MINUTE) == b"!"
        claimed = (await broker.exchange(queue, ExchangeRequest("w", 1, 1))).claimed
        ended = (Settlement(claimed[0].id, claimed[0].token, Outcome.complete()),)
        assert (await broker.exchange(queue, ExchangeRequest("w", 2, 1, ended))).refused == ()
        await broker.upkeep(queue)

    assert set(queues) <= set(await broker.queues())
    assert [await ready_jobs(broker, queue) for queue in queues] == [0, 0, 0]


async def test_a_program_without_an_event_loop_is_served(
    cluster: ThreeNodes, queues: tuple[QueueName, ...]
) -> None:
    blocking = connect_blocking(cluster.url(cluster.nodes[1]))

    def use() -> None:
        for queue in queues:
            drive(blocking.enqueue(queue, [job("a")]))
            assert drive(blocking.wait_for_document(queue, MINUTE)) == b"!"
        assert set(queues) <= set(drive(blocking.queues()))
        assert drive(blocking.transport.run_all([take_term(q) for q in queues])) == [1, 1, 1]

    try:
        await asyncio.to_thread(use)
    finally:
        drive(blocking.close())


async def test_the_old_leader_is_refused_where_the_new_one_had_not_been_before(
    cluster: ThreeNodes, queues: tuple[QueueName, ...]
) -> None:
    old, new = connect(cluster.url()), connect(cluster.url())
    try:
        terms = [await old.take_term(queue) for queue in queues]
        await old.put_crontasks(queues[2], terms[2], {"c1": b"{}"})
        assert await new.crontasks(queues[0]) == {}

        taken = await new.transport.run_all([take_term(queue) for queue in queues])

        assert taken == [term + 1 for term in terms]
        for queue, term in zip(queues, terms, strict=True):
            with pytest.raises(StaleTermError):
                await old.put_crontasks(queue, term, {})
        assert await new.crontasks(queues[2]) == {"c1": {}}
    finally:
        await old.close()
        await new.close()


async def test_a_queue_that_has_moved_is_found(
    cluster: ThreeNodes, broker: RedisBroker, queues: tuple[QueueName, ...]
) -> None:
    queue, target = queues[0], cluster.nodes[1]
    blocking = connect_blocking(cluster.url())
    drive(blocking.enqueue(queue, [job("a")]))
    await broker.enqueue(queue, [job("b")])

    cluster.announce_move(queue, target)
    cluster.move_keys(queue, target)
    cluster.conclude_move(queue, target)

    try:
        await broker.enqueue(queue, [job("c")])
        drive(blocking.enqueue(queue, [job("d")]))
        assert await ready_jobs(broker, queue) == 4
        assert await broker.transport.run_all([take_term(q) for q in queues]) == [1, 1, 1]
    finally:
        drive(blocking.close())


async def test_a_queue_that_is_being_moved_is_away_until_it_has_arrived(
    cluster: ThreeNodes, broker: RedisBroker, queues: tuple[QueueName, ...]
) -> None:
    queue, target = queues[2], cluster.nodes[0]
    await broker.enqueue(queue, [job("a")])
    cluster.announce_move(queue, target)
    cluster.move_keys(queue, target)

    assert await broker.transport.command("HLEN", f"tw1:{{{queue}}}:jobs") == 1
    with pytest.raises(BrokerUnavailableError, match="moving these keys; try again"):
        await broker.enqueue(queue, [job("b")])
    cluster.conclude_move(queue, target)

    await broker.enqueue(queue, [job("b")])
    assert await ready_jobs(broker, queue) == 2


async def test_whoever_waits_for_work_goes_where_the_queue_goes(
    cluster: ThreeNodes, broker: RedisBroker, queues: tuple[QueueName, ...]
) -> None:
    queue, target = queues[1], cluster.nodes[2]
    await broker.open_queue(queue)
    source = cluster.owner(queue)
    waiting = asyncio.ensure_future(broker.wait_for_document(queue, MINUTE))
    await asyncio.to_thread(wait_until_blocked, source)
    cluster.announce_move(queue, target)
    cluster.move_keys(queue, target)
    cluster.conclude_move(queue, target)
    target.say("LPUSH", f"tw1:{{{queue}}}:inbox", "a document")

    assert await asyncio.wait_for(waiting, 20) == b"a document"


async def test_a_server_that_is_away_fails_its_own_calls_only(
    cluster: ThreeNodes, broker: RedisBroker, queues: tuple[QueueName, ...]
) -> None:
    away = cluster.owner(queues[1])
    await broker.enqueue(queues[1], [job("a")])
    waiting = asyncio.ensure_future(broker.wait_for_document(queues[1], MINUTE))
    assert await waiting == b"!"
    waiting = asyncio.ensure_future(broker.wait_for_document(queues[1], MINUTE))
    await asyncio.to_thread(wait_until_blocked, away)
    away.kill()
    try:
        first, lost, last = await broker.transport.run_each([take_term(q) for q in queues])

        assert (first, last) == (1, 1)
        assert isinstance(lost, BrokerUnavailableError)
        assert str(away.port) in str(lost)
        with pytest.raises(BrokerUnavailableError):
            await broker.transport.run_all([take_term(q) for q in queues])
        with pytest.raises(BrokerUnavailableError):
            await asyncio.wait_for(waiting, 20)
        await broker.enqueue(queues[0], [job("a")])
    finally:
        await asyncio.to_thread(away.restart)
        await asyncio.to_thread(cluster.wait_until_whole)
    assert await until(lambda: ready_jobs(broker, queues[1]), errors=UNAVAILABLE) == 1
    assert await broker.transport.run_all([take_term(q) for q in queues]) == [3, 1, 3]


async def test_a_url_of_the_other_kind_is_refused_with_the_remedy(
    cluster: ThreeNodes, queues: tuple[QueueName, ...]
) -> None:
    node: ClusterNode = cluster.nodes[0]
    as_single = connect(f"redis://127.0.0.1:{node.port}/0")
    with pytest.raises(BrokerRefusedError, match=r"redis\+cluster://"):
        await as_single.enqueue(queues[1], [job("a")])
    await as_single.close()
    with ValkeyServer() as single:
        as_cluster = connect(f"redis+cluster://127.0.0.1:{single.port}")
        with pytest.raises(BrokerRefusedError, match="names servers of a Cluster"):
            await as_cluster.enqueue(queues[1], [job("a")])
        await as_cluster.close()
