"""Whoever may write into a queue's keys harms that queue alone: readers get a BrokerError."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from tests.support.servers import ValkeyServer
from tidework.broker.keys import QUEUE_PARTS, queue_key
from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.errors import BrokerError
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState


@pytest.fixture
async def broker(valkey: ValkeyServer) -> AsyncIterator[RedisBroker]:
    found = connect(valkey.url)
    yield found
    await found.close()


UID = {"uid": "u"}


@pytest.mark.parametrize(
    ("writes", "method", "arguments"),
    [
        ([("HSET", "presence", "x", "nojson"), ("ZADD", "seen", "1", "x")], "workers", {}),
        ([("HSET", "presence", "x", "5"), ("ZADD", "seen", "1", "x")], "workers", {}),
        ([("HSET", "counters", "enqueued", "many")], "stats", {}),
        ([("HSET", "services", "t", "fast")], "gather", {"horizon": timedelta(0)}),
        ([("HSET", "crontasks", "u", "{")], "crontasks", {}),
        (
            [("HSET", "crons", "u/fingerprint", "f", "u/watermark", "x")],
            "cron_record",
            UID,
        ),
        ([("HSET", "details", "a", "[1")], "get_job", {"job_id": "a"}),
        ([("HSET", "details", "a", "[" * 10_000)], "get_job", {"job_id": "a"}),
        (
            [
                ("ZADD", "errors", "1", "E"),
                ("ZADD", "index", "0", "error:E|0000000000001|a"),
                ("HSET", "details", "a", "[" * 10_000),
            ],
            "list_errors",
            {},
        ),
    ],
)
async def test_what_cannot_be_read_is_told_as_trouble_of_the_queue(
    broker: RedisBroker,
    namespace: str,
    writes: list[tuple[str, ...]],
    method: str,
    arguments: dict[str, Any],
) -> None:
    queue = QueueName(namespace, "emails")
    await broker.enqueue(queue, [Job("a", "t", {})])
    for command, part, *rest in writes:
        await broker.transport.command(command, f"tw1:{{{queue}}}:{part}", *rest)
    try:
        with pytest.raises(BrokerError):
            await getattr(broker, method)(queue, **arguments)
    finally:
        await broker.transport.command("DEL", *(queue_key(queue, part) for part in QUEUE_PARTS))


async def test_the_registry_is_shared_and_an_odd_entry_hides_nobody(
    broker: RedisBroker, namespace: str
) -> None:
    queue = QueueName(namespace, "emails")
    await broker.open_queue(queue)
    await broker.transport.command("SADD", "tw1:registry", "No Name", b"\xff/x")
    try:
        assert queue in await broker.queues()
    finally:
        await broker.transport.command("SREM", "tw1:registry", "No Name", b"\xff/x")
    assert (await broker.list_jobs(queue, JobState.READY)).ids == ()
