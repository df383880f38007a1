"""The proxy loses, holds and repeats what it was asked to, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from tests.support.proxy import Fate, Proxy, script_names
from tests.support.servers import ValkeyServer
from tidework.broker.redis.redis_broker import connect
from tidework.errors import BrokerUnavailableError
from tidework.model.identity import QueueName
from tidework.model.job import Job


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[redis.asyncio.Redis]:
    found = redis.asyncio.Redis.from_url(
        proxy.url, protocol=2, socket_timeout=10, retry=Retry(NoBackoff(), 0)
    )
    yield found
    await found.aclose()


async def read(valkey: ValkeyServer, key: str) -> bytes | None:
    with valkey.client() as direct:
        value: bytes | None = direct.get(key)
        return value


async def test_everything_passes_unchanged(
    client: redis.asyncio.Redis, proxy: Proxy, namespace: str
) -> None:
    values = [b"", b"\r\n$3\r\nnot\r\n", bytes(range(256)) * 5000]
    await client.rpush(namespace, *values)
    pipe = client.pipeline(transaction=True)
    pipe.lrange(namespace, 0, -1)
    pipe.llen(namespace)
    pipe.get("no such key")

    assert await pipe.execute() == [values, 3, None]
    assert proxy.seen["exec"] == 1


async def test_a_lost_request_was_not_done(
    client: redis.asyncio.Redis, proxy: Proxy, valkey: ValkeyServer, namespace: str
) -> None:
    caught = proxy.catch("incrby", Fate.LOSE_REQUEST, nth=2)
    await client.incr(namespace)

    with pytest.raises(redis.exceptions.ConnectionError):
        await client.incr(namespace)

    assert await read(valkey, namespace) == b"1"
    assert await proxy.send(caught.request) == b":2\r\n", "it arrives late"
    assert await client.incr(namespace) == 3, "only one was to be lost"


async def test_a_lost_reply_is_of_a_request_that_was_done(
    client: redis.asyncio.Redis, proxy: Proxy, valkey: ValkeyServer, namespace: str
) -> None:
    caught = proxy.catch("incrby", Fate.LOSE_REPLY)

    with pytest.raises(redis.exceptions.ConnectionError):
        await client.incr(namespace)

    assert caught.reply == b":1\r\n"
    assert await read(valkey, namespace) == b"1"


async def test_a_swallowed_reply_leaves_the_client_waiting(
    proxy: Proxy, valkey: ValkeyServer, namespace: str
) -> None:
    proxy.catch("incrby", Fate.SWALLOW_REPLY)
    impatient = redis.asyncio.Redis.from_url(
        proxy.url, protocol=2, socket_timeout=0.2, retry=Retry(NoBackoff(), 0)
    )

    with pytest.raises(redis.exceptions.TimeoutError):
        await impatient.incr(namespace)

    await impatient.aclose()
    assert await read(valkey, namespace) == b"1"


async def test_a_held_reply_comes_when_it_is_released(
    client: redis.asyncio.Redis, proxy: Proxy, valkey: ValkeyServer, namespace: str
) -> None:
    caught = proxy.catch("incrby", Fate.HOLD_REPLY)
    asking = asyncio.ensure_future(client.incr(namespace))
    await caught.answered.wait()
    assert await read(valkey, namespace) == b"1"
    assert not asking.done()

    caught.release()

    assert await asking == 1


async def test_scripts_are_known_by_name_also_where_the_server_forgot_them(
    proxy: Proxy, valkey: ValkeyServer, namespace: str
) -> None:
    queue = QueueName(namespace, "q")
    broker = connect(proxy.url)
    await broker.open_queue(queue)
    with valkey.client() as direct:
        direct.script_flush()
    caught = proxy.catch("enqueue", Fate.LOSE_REPLY)

    with pytest.raises(BrokerUnavailableError):
        await broker.enqueue(queue, [Job("a", "t", {})])

    assert not caught.reply.startswith(b"-"), "the refusal for an unknown script was passed on"
    assert await broker.get_job(queue, "a") is not None
    assert proxy.seen["enqueue"] == 2
    await broker.close()


async def test_a_hook_runs_before_each_request(proxy: Proxy, client: redis.asyncio.Redis) -> None:
    names = []

    async def note(name: str) -> None:
        names.append(name)

    proxy.before_each = note
    await client.ping()

    assert names[-1] == "ping"


async def test_new_connections_lead_to_the_port_of_then(
    proxy: Proxy, valkey: ValkeyServer, client: redis.asyncio.Redis
) -> None:
    with ValkeyServer() as other:
        proxy.port = other.port
        info = await client.info("server")
        await client.aclose()

    assert info["tcp_port"] == other.port


async def test_a_server_that_is_gone_ends_the_connection(
    client: redis.asyncio.Redis, proxy: Proxy
) -> None:
    with ValkeyServer() as other:
        proxy.port = other.port
        await client.ping()
        other.kill()
        with pytest.raises(redis.exceptions.ConnectionError):
            await client.ping()
        with pytest.raises(redis.exceptions.ConnectionError):
            await client.ping()


def test_every_script_has_a_name() -> None:
    assert {"exchange", "enqueue", "take_term"} <= set(script_names().values())
