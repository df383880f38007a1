"""Every act is recorded, by whatever route, and nothing secret is."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import Depends

from tidework.access.caller import Permission
from tidework.access.recording import reason_of
from tidework.access.requires import requires
from tidework.access.tokens import StaticTokens
from tidework.api.application import create_api
from tidework.api.context import ApiContext, Namespace
from tidework.broker.acts import Act
from tidework.errors import BrokerFullError, BrokerUnavailableError
from tidework.testing.memory.broker import MemoryBroker

TOKENS = {"ann": ("ann-secret", "operator"), "bob": ("bob-secret", "viewer")}


class Forgetful(MemoryBroker):
    """Cannot write the record while it is away."""

    is_away = False

    async def note_act(self, namespace: str, act: Act) -> bool:
        if self.is_away:
            raise BrokerUnavailableError("away")
        return await super().note_act(namespace, act)


@pytest.fixture
def broker() -> Forgetful:
    return Forgetful()


@pytest.fixture
async def client(broker: Forgetful, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    file = tmp_path / "tokens.toml"
    file.write_text(
        "\n".join(
            f'[{name}]\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n'
            f'permission = "{permission}"'
            for name, (token, permission) in TOKENS.items()
        )
    )
    app = create_api(ApiContext(broker, StaticTokens(file), "shop"))

    async def act(namespace: Namespace, body: dict[str, Any], reason: str = "") -> dict[str, Any]:
        if body.get("full"):
            raise BrokerFullError("full")
        if body.get("broken"):
            raise RuntimeError("a fault")
        return body

    app.add_api_route(
        "/api/v1/queues/{queue}/act",
        act,
        methods=["POST"],
        name="act_on_queue",
        dependencies=[Depends(requires(Permission.OPERATOR))],
    )
    app.add_api_route("/open", act, methods=["PUT"], name="open_to_all")
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as found:
        yield found


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[name][0]}"}


async def acts(broker: MemoryBroker, namespace: str = "shop") -> list[Act]:
    return [act for _, act in (await broker.acts(namespace)).acts]


async def test_who_did_what_on_what_and_why(client: httpx.AsyncClient, broker: Forgetful) -> None:
    answer = await client.post(
        "/api/v1/queues/emails/act", json={"reason": "a\nrepair", "x": 1}, headers=bearer("ann")
    )
    (act,) = await acts(broker)

    assert answer.status_code == 200
    assert (act.by, act.via, act.permission) == ("ann", "token", "operator")
    assert (act.name, act.target) == ("act_on_queue", "/api/v1/queues/emails/act")
    assert (act.reason, act.status) == ("a repair", 200)


@pytest.mark.parametrize(("body", "status"), [({"full": 1}, 507), ({"broken": 1}, 500)])
async def test_how_it_ended(
    client: httpx.AsyncClient, broker: Forgetful, body: dict[str, int], status: int
) -> None:
    answer = await client.post("/api/v1/queues/emails/act", json=body, headers=bearer("ann"))

    assert answer.status_code == status
    assert [act.status for act in await acts(broker)] == [status]


async def test_the_namespace_is_that_of_the_request(
    client: httpx.AsyncClient, broker: Forgetful
) -> None:
    await client.post(
        "/api/v1/queues/q/act", params={"namespace": "bank"}, json={}, headers=bearer("ann")
    )

    assert await acts(broker) == []
    assert len(await acts(broker, "bank")) == 1


@pytest.mark.parametrize(
    ("headers", "status"), [({}, 401), ({"Authorization": "Bearer no"}, 401), (bearer("bob"), 403)]
)
async def test_what_is_refused_is_in_the_log_alone(
    client: httpx.AsyncClient,
    broker: Forgetful,
    caplog: pytest.LogCaptureFixture,
    headers: dict[str, str],
    status: int,
) -> None:
    answer = await client.post("/api/v1/queues/emails/act", json={}, headers=headers)

    assert answer.status_code == status
    assert await acts(broker) == []
    assert events(caplog) == ["act_refused"]


async def test_a_look_is_not_an_act(client: httpx.AsyncClient, broker: Forgetful) -> None:
    await client.get("/api/v1/queues", headers=bearer("ann"))

    assert await acts(broker) == []


async def test_a_record_that_cannot_be_written_undoes_nothing(
    client: httpx.AsyncClient, broker: Forgetful, caplog: pytest.LogCaptureFixture
) -> None:
    broker.is_away = True
    caplog.set_level(logging.INFO)

    answer = await client.post("/api/v1/queues/emails/act", json={}, headers=bearer("ann"))

    assert answer.status_code == 200
    assert events(caplog) == ["act_done", "act_not_recorded"]
    assert [vars(line)["by"] for line in caplog.records if hasattr(line, "by")] == ["ann", "ann"]


async def test_nothing_secret_is_recorded_or_logged(
    client: httpx.AsyncClient, broker: Forgetful, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    headers = bearer("ann") | {"Cookie": "session=cookie-secret"}

    await client.post(
        "/api/v1/queues/emails/act?reason=why&namespace=shop",
        json={"params": {"password": "body-secret"}, "broken": 1},
        headers=headers,
    )
    await client.post(
        "/api/v1/queues/q/act", json={}, headers={"Authorization": "Bearer no-secret"}
    )

    ours = [line for line in caplog.records if line.name.startswith("tidework")]
    kept = json.dumps([vars(line) for line in ours], default=repr)
    assert len(await acts(broker)) == 1
    assert "-secret" not in kept + repr(await acts(broker))


async def test_an_operator_reads_the_record_by_pages(client: httpx.AsyncClient) -> None:
    for number in range(3):
        await client.post(
            f"/api/v1/queues/q{number}/act", json={"reason": "why"}, headers=bearer("ann")
        )

    first = (await client.get("/api/v1/audit?limit=2", headers=bearer("ann"))).json()
    second = (
        await client.get(f"/api/v1/audit?cursor={first['next']}", headers=bearer("ann"))
    ).json()

    assert [act["target"][-6:] for act in first["items"]] == ["q2/act", "q1/act"]
    assert [act["number"] for act in second["items"]] == [1]
    assert second["next"] is None
    assert (await client.get("/api/v1/audit", headers=bearer("bob"))).status_code == 403


@pytest.mark.parametrize(
    ("query", "body", "reason"),
    [
        (b"reason=a%20repair", b"", "a repair"),
        (b"", b' {"reason": "a repair"}', "a repair"),
        (b"reason=query", b'{"reason": "body"}', "query"),
        (b"", b'{"reason": 7}', ""),
        (b"", b'{"reason": "cut', ""),
        (b"", b"[1]", ""),
        (b"", b"\xff", ""),
        (b"", b'{"reason": "' + b"x" * 400 + b'"}', "x" * 297 + "..."),
    ],
)
def test_a_reason_is_given_in_the_query_or_the_body(query: bytes, body: bytes, reason: str) -> None:
    assert reason_of(query, body) == reason


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [vars(line).get("event", "") for line in caplog.records]
    return [event for event in found if event.startswith("act_")]
