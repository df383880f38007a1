"""The API and its OpenAPI document agree, whatever is sent; and a GET changes nothing."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
import redis
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.integration.api.served import served
from tests.support.servers import ValkeyServer
from tidework.access.access import Everybody
from tidework.access.caller import Permission
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.broker.redis.redis_broker import connect
from tidework.clock import from_ms
from tidework.model.backlog import Presence
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.testing.memory.broker import MemoryBroker

NAMES = {"queue": "emails", "job_id": "waits", "name": "w.1", "crontask": "nightly"}


async def seed(url: str, queue: QueueName) -> None:
    """A queue with a job, a worker and a CronTask."""
    broker = connect(url)
    await broker.open_queue(queue)
    await broker.enqueue(
        queue, [Job("waits", "send", {"to": "ann"}), Job("later", "t", {}, delay=9)]
    )
    presence = Presence("w.1", from_ms(0), {"slots": 2})
    await broker.beat(queue, presence, ttl=timedelta(minutes=5))
    await broker.close()


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[str, redis.Redis]]:
    """The URL of an API over a server of its own, and a client of that server."""
    with ValkeyServer() as server:
        namespace = f"t-{secrets.token_hex(4)}"
        asyncio.run(seed(server.url, QueueName(namespace, "emails")))
        with served(server.url, namespace) as url, server.client() as client:
            yield url, client


DOCUMENT = create_api(ApiContext(MemoryBroker(), Everybody(Permission.ADMIN))).openapi()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [
    (method.upper(), path)
    for path, found in DOCUMENT["paths"].items()
    for method in found
    if path != "/api/v1/events"  # a stream does not end: test_events.py listens to it
]


EXCUSED = {
    # Two fields that exclude each other, and a ttl that another value asks for: no schema says so.
    "/api/v1/queues/{queue}/jobs": [positive_data_acceptance]
}


@pytest.mark.parametrize(
    ("method", "path"), OPERATIONS, ids=[f"{method} {path}" for method, path in OPERATIONS]
)
def test_every_answer_is_as_the_document_says(
    world: tuple[str, redis.Redis], method: str, path: str
) -> None:
    operation = SCHEMA[path][method]

    @given(case=operation.as_strategy())
    @settings(
        max_examples=10,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    def holds(case: Any) -> None:
        case.call_and_validate(base_url=world[0], excluded_checks=EXCUSED.get(path, []))

    holds()


def dump(client: redis.Redis) -> dict[bytes, Any]:
    """Everything that is stored."""
    return {key: client.dump(key) for key in client.scan_iter(count=1000)}


def test_no_get_changes_anything(world: tuple[str, redis.Redis]) -> None:
    url, client = world
    document = httpx.get(f"{url}/api/v1/openapi.json").json()
    paths = [path for path, operations in document["paths"].items() if "get" in operations]
    paths.remove("/api/v1/events")  # it does not end, and reads by the other routes
    before = dump(client)

    for path in paths:
        answer = httpx.get(url + path.format(**NAMES), timeout=20)
        assert answer.status_code < 500, answer.text
        assert dump(client) == before, path

    assert len(paths) > 10
