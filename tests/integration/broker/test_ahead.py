"""Exchanges behind a wait: whatever becomes of the connection, what they claimed can be found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.support.proxy import Fate, Proxy
from tests.support.servers import ValkeyServer, wait_until_blocked
from tests.support.waiting import until
from tidework.broker.documents import MARKER
from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.errors import BrokerUnavailableError
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest

LONG = timedelta(seconds=20)
REQUEST = ExchangeRequest("w", 1, 3, woken=True, most_held=3)


@pytest.fixture
async def broker(proxy: Proxy) -> AsyncIterator[RedisBroker]:
    found = connect(proxy.url)
    yield found
    await found.close()


@pytest.fixture
async def direct(valkey: ValkeyServer) -> AsyncIterator[RedisBroker]:
    found = connect(valkey.url)
    yield found
    await found.close()


@pytest.fixture
async def queue(namespace: str, direct: RedisBroker) -> QueueName:
    found = QueueName(namespace, "q")
    await direct.exchange(found, ExchangeRequest("other", 1, 0))
    return found


async def ask(broker: RedisBroker, queue: QueueName) -> list[str]:
    return [claimed.id for claimed in (await broker.exchange(queue, REQUEST)).claimed]


async def test_a_lost_reply_is_told_again(
    broker: RedisBroker, direct: RedisBroker, proxy: Proxy, valkey: ValkeyServer, queue: QueueName
) -> None:
    proxy.catch("exchange", Fate.LOSE_REPLY)
    waiting = asyncio.create_task(broker.wait_then_exchange(queue, LONG, REQUEST))
    await asyncio.to_thread(wait_until_blocked, valkey)
    await direct.enqueue(queue, [Job("a", "t", {})])

    with pytest.raises(BrokerUnavailableError):
        await waiting

    assert await ask(broker, queue) == ["a"]
    assert (await direct.stats(queue)).counters["claimed"] == 1


async def test_one_that_was_given_up_claims_nothing_later(
    broker: RedisBroker, direct: RedisBroker, valkey: ValkeyServer, queue: QueueName
) -> None:
    waiting = asyncio.create_task(broker.wait_then_exchange(queue, LONG, REQUEST))
    await asyncio.to_thread(wait_until_blocked, valkey)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    async def is_ended() -> bool:
        return "blmove" not in str(await direct.transport.command("CLIENT", "LIST"))

    await until(is_ended, "the server knows")

    await direct.enqueue(queue, [Job("a", "t", {})])

    assert await direct.wait_for_document(queue, LONG) == MARKER, "nobody else waits"
    assert (await direct.stats(queue)).counters.get("claimed", 0) == 0
    assert await ask(broker, queue) == ["a"]


async def test_a_server_that_forgot_the_script_has_no_reply(
    direct: RedisBroker, queue: QueueName
) -> None:
    await direct.enqueue(queue, [Job("a", "t", {})])
    await direct.transport.command("SCRIPT", "FLUSH")

    assert await direct.wait_then_exchange(queue, LONG, REQUEST) == (MARKER, None)

    assert await ask(direct, queue) == ["a"]
