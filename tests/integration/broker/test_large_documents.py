"""A large document that comes to somebody who waits: its beginning, and the connection lives on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.support.servers import ValkeyServer
from tidework.broker.connection import wire
from tidework.broker.documents import BEGINNING_BYTES, MAX_DOCUMENT_BYTES, Beginning
from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest

LARGE = b"x" * (5 * MAX_DOCUMENT_BYTES)
SECOND = timedelta(seconds=1)


@pytest.fixture(params=["with hiredis", "without hiredis"])
async def broker(
    request: pytest.FixtureRequest, valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RedisBroker]:
    if request.param == "without hiredis":
        monkeypatch.setattr(wire, "hiredis", None)
    found = connect(valkey.url)
    yield found
    await found.close()


async def test_the_beginning_comes_and_then_the_exchange(
    broker: RedisBroker, valkey: ValkeyServer, namespace: str
) -> None:
    queue = QueueName(namespace, "jobs")
    await broker.enqueue(queue, [Job("a", "t", {})])
    await broker.exchange(queue, ExchangeRequest("v", 1, 0))  # its script is known from here on
    with valkey.client() as foreign:
        foreign.delete(f"tw1:{{{queue}}}:inbox")
        foreign.lpush(f"tw1:{{{queue}}}:inbox", LARGE, b"short", LARGE)
        connections: list[set[str]] = []
        for sequence, wanted in enumerate((LARGE, b"short", LARGE), 1):
            request = ExchangeRequest("w", sequence, 1, most_held=1)
            document, reply = await broker.wait_then_exchange(queue, SECOND, request)
            assert document == wanted[:BEGINNING_BYTES]
            if wanted == LARGE:
                assert isinstance(document, Beginning)
                assert document.length == len(LARGE)
            assert reply is not None
            assert [found.id for found in reply.claimed] == (["a"] if sequence == 1 else [])
            connections.append({each["id"] for each in foreign.client_list()})
        assert connections[0] == connections[2], "whoever waited goes on with its connection"
