"""Queues by the API: what is there, page by page, and what is said of one that is not."""

from __future__ import annotations

import httpx
import pytest
from starlette.requests import HTTPConnection

from tests.support.servers import ValkeyServer
from tidework.access.access import Everybody
from tidework.access.caller import Caller, Permission
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.model.identity import QueueName
from tidework.model.job import Job


@pytest.fixture
def emails(namespace: str) -> QueueName:
    return QueueName(namespace, "emails")


async def test_a_queue_tells_its_jobs_by_state(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await broker.open_queue(emails)
    await broker.enqueue(emails, [Job("a", "t", {}), Job("b", "t", {}, delay=60)])

    found = (await api.get("/queues/emails")).json()

    assert (found["name"], found["ready"], found["scheduled"]) == ("emails", 1, 1)
    assert found["counters"]["enqueued"] == 2


async def test_a_pause_is_told_with_its_reason(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await broker.open_queue(emails)
    await broker.pause(emails, "the mail server moves")

    pause = (await api.get("/queues/emails")).json()["pause"]

    assert pause["reason"] == "the mail server moves"
    assert pause["since"].endswith("Z")


async def test_queues_come_page_by_page_and_of_one_namespace(
    api: httpx.AsyncClient, broker: RedisBroker, namespace: str
) -> None:
    for name in ("a", "b", "c"):
        await broker.open_queue(QueueName(namespace, name))
    await broker.open_queue(QueueName(f"{namespace}-other", "d"))

    first = (await api.get("/queues", params={"limit": 2})).json()
    second = (await api.get("/queues", params={"limit": 2, "cursor": first["next"]})).json()
    other = (await api.get("/queues", params={"namespace": f"{namespace}-other"})).json()

    assert [queue["name"] for queue in first["items"]] == ["a", "b"]
    assert [queue["name"] for queue in second["items"]] == ["c"]
    assert second["next"] is None
    assert [queue["name"] for queue in other["items"]] == ["d"]


async def test_a_look_at_a_queue_that_is_not_there_makes_none(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await broker.open_queue(emails)

    answer = await api.get("/queues/email")

    assert (answer.status_code, answer.json()["code"]) == (404, "queue_not_found")
    assert "'emails'" in answer.json()["detail"]
    assert answer.headers["content-type"] == "application/problem+json"
    assert QueueName(emails.namespace, "email") not in await broker.queues()


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/queues?limit=0", "limit"),
        ("/queues?limit=501", "limit"),
        ("/queues?namespace=No", "namespace"),
        ("/queues/No", "queue"),
        ("/queues?limt=5", None),
    ],
)
async def test_a_request_that_is_not_valid_is_told_where(
    api: httpx.AsyncClient, path: str, field: str | None
) -> None:
    answer = await api.get(path)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert answer.json().get("field") == field


async def test_an_address_and_a_method_that_are_not_there_are_problems(
    api: httpx.AsyncClient,
) -> None:
    assert (await api.get("/nothing")).json()["code"] == "not_found"
    assert (await api.delete("/queues")).json()["code"] == "method_not_allowed"


async def test_redis_away_is_a_problem_that_says_when_to_come_again(namespace: str) -> None:
    with ValkeyServer() as server:
        broker = connect(server.url)
        port = server.port
    app = create_api(ApiContext(broker, Everybody(Permission.ADMIN), namespace))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        answer = await client.get("/api/v1/queues")
    await broker.close()

    assert (answer.status_code, answer.json()["code"]) == (503, "redis_unavailable")
    assert answer.headers["retry-after"] == "1"
    assert f":{port}" in answer.json()["detail"]


async def test_who_may_not_look_sees_nothing(broker: RedisBroker, namespace: str) -> None:
    class ElsewhereOnly(Everybody):
        async def identify(self, request: HTTPConnection) -> Caller:
            return Caller("ann", Permission.ADMIN, frozenset({"elsewhere"}))

    app = create_api(ApiContext(broker, ElsewhereOnly(Permission.ADMIN), namespace))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        answer = await client.get("/api/v1/queues")

    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
