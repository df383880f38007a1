"""The API within somebody else's application: under a prefix, and beside another ASGI program."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from tidework.access.access import Everybody
from tidework.access.caller import Permission
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.model.identity import QueueName


def in_starlette(api: ASGIApp) -> ASGIApp:
    return Starlette(routes=[Mount("/tidework", api)])


def in_fastapi(api: ASGIApp) -> ASGIApp:
    app = FastAPI()
    app.mount("/tidework", api)
    return app


def beside_another(api: ASGIApp) -> ASGIApp:
    """As docs/http-api.md has it for Django."""
    django = PlainTextResponse("a page of Django")

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/tidework/"):
            await api(
                {**scope, "root_path": scope.get("root_path", "") + "/tidework"}, receive, send
            )
        else:
            await django(scope, receive, send)

    return application


@pytest.mark.parametrize("host", [in_starlette, in_fastapi, beside_another])
async def test_it_works_below_a_prefix(
    broker: RedisBroker, namespace: str, host: Callable[[ASGIApp], ASGIApp]
) -> None:
    await broker.open_queue(QueueName(namespace, "emails"))
    api = create_api(ApiContext(broker, Everybody(Permission.OPERATOR), namespace))
    transport = httpx.ASGITransport(host(api))
    async with httpx.AsyncClient(transport=transport, base_url="http://test/tidework") as client:
        document = (await client.get("/api/v1/openapi.json")).json()
        listed = (await client.get("/api/v1/queues")).json()["items"]
        made = await client.post("/api/v1/queues/emails/jobs", json={"task": "t"})
        missing = await client.get("/api/v1/queues/nothing")
        foreign = await client.post(
            "/api/v1/queues/emails/jobs",
            json={"task": "t"},
            headers={"Sec-Fetch-Site": "cross-site"},
        )

    assert document["servers"] == [{"url": "/tidework"}]
    assert [queue["name"] for queue in listed] == ["emails"]
    assert made.status_code == 201
    assert (missing.status_code, missing.json()["code"]) == (404, "queue_not_found")
    assert foreign.json()["code"] == "foreign_page"
