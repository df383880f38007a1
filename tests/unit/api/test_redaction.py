"""What no answer shows, in values and in texts; and that the mask does not come back as a value."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tidework.access.access import Everybody
from tidework.access.caller import Permission
from tidework.access.redaction import (
    DEEPEST,
    MASK,
    USUAL,
    Redaction,
    Redactor,
    is_masked,
    read_redaction,
)
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.errors import ConfigurationError
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest, Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.testing.memory.broker import MemoryBroker


def shown(value: Any, redaction: Redaction = USUAL) -> tuple[Any, list[str]]:
    redactor = Redactor(redaction)
    return redactor.value("params", value), redactor.fields


@pytest.mark.parametrize(
    "name",
    ["password", "Password", "db_password", "apiKey", "API-KEY", "accessToken", "x.authorization"],
)
def test_a_field_that_is_called_like_a_secret(name: str) -> None:
    assert shown({name: "hunter2", "to": "ann"}) == (
        {name: MASK, "to": "ann"},
        [f"params.{name}"],
    )


def test_whatever_the_value_is() -> None:
    found = {"token": {"a": [1]}, "list": [{"secret": 7}], "cookie": None, "secrets": []}

    assert shown(found) == (
        {"token": MASK, "list": [{"secret": MASK}], "cookie": None, "secrets": MASK},
        ["params.token", "params.list.0.secret", "params.secrets"],
    )


@pytest.mark.parametrize("value", [None, 1, "password", ["token"], {"to": "password=x"}, {}])
def test_what_is_not_such_a_field_is_shown(value: Any) -> None:
    assert shown(value) == (value, [])


def test_rules_by_name_and_path() -> None:
    redaction = read_redaction("iban $.card.number $.items.*.pin -token")
    found = {
        "IBAN_of_ann": "DE",
        "card": {"number": 1, "name": "ann"},
        "items": [{"pin": 1}, {"pin": 2, "number": 3}],
        "number": 4,
        "token": "t",
        "password": "p",
    }

    value, fields = shown(found, redaction)

    assert value["token"] == "t"
    assert value["number"] == 4
    assert value["items"][1]["number"] == 3
    assert fields == [
        "params.IBAN_of_ann",
        "params.card.number",
        "params.items.0.pin",
        "params.items.1.pin",
        "params.password",
    ]


@pytest.mark.parametrize("rule", ["$", "$.", "$card", "-iban", "--", "$.a..b", "-"])
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a rule of redaction"):
        read_redaction(rule)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("login failed, password=hunter2, try again", "hunter2"),
        ("password: 'hunter 2'", "hunter 2"),
        ('{"api_key": "hunter2"}', "hunter2"),
        ("{'DB_PASSWORD': 'hun\\'ter2'}", "ter2"),
        ("Authorization: Bearer hunter2hunter2", "hunter2"),
        ("curl -H 'authorization: basic aHVudGVyMg=='", "aHVudGVyMg"),
        ("cannot reach redis://app:hunter2@redis:6379/0", "hunter2"),
        ("GET /?access_token=hunter2&x=1", "hunter2"),
    ],
)
def test_a_secret_in_a_text(text: str, hidden: str) -> None:
    redactor = Redactor(USUAL)

    found = redactor.text("message", text)

    assert hidden not in found
    assert MASK in found
    assert redactor.fields == ["message"]


@pytest.mark.parametrize(
    "text",
    ["", "no token was given", "the password is wrong", "https://host:80/a@b", "ratio=7 tokens"],
)
def test_a_text_without_one_stays(text: str) -> None:
    redactor = Redactor(USUAL)

    assert redactor.text("message", text) == text
    assert redactor.fields == []


def test_the_value_of_such_a_field_is_found_in_texts() -> None:
    redactor = Redactor(USUAL)
    redactor.value("params", {"token": 'hunter"2', "secret": ["sesame"], "password": "ab"})

    assert redactor.text("m", 'no user for hunter"2 or sesame, about') == (
        f"no user for {MASK} or {MASK}, about"
    )


def test_no_value_is_too_deep_and_no_text_takes_long() -> None:
    deep: Any = "bottom"
    for _ in range(900):
        deep = [deep]

    value, fields = shown(deep)

    assert "bottom" not in json.dumps(value)
    assert fields == ["params" + ".0" * DEEPEST]
    for text in ("a" * 200_000, "token" * 40_000, "://" * 60_000, "token=" * 30_000, "'" * 100_000):
        Redactor(USUAL).text("m", text)


@pytest.mark.parametrize(
    ("value", "masked"),
    [({"a": [f"x{MASK}"]}, True), (MASK, True), ({"a": [1, None, "x"]}, False)],
)
def test_a_mask_is_known_again(value: Any, *, masked: bool) -> None:
    assert is_masked(value) is masked


async def test_a_job_is_answered_without_its_secrets() -> None:
    broker, queue = MemoryBroker(), QueueName("default", "emails")
    params = {"to": "ann", "password": "hunter2!"}
    await broker.enqueue(queue, [Job("j", "send", params, created_at=1.0)])
    await broker.exchange(queue, ExchangeRequest("w", 1, 1, ()))
    error = JobError("E", "no login with hunter2!", trace="token=abc at line 1")
    await broker.exchange(
        queue, ExchangeRequest("w", 2, 0, (Settlement("j", "w:1", Outcome.bury(error)),))
    )
    app = create_api(ApiContext(broker, Everybody(Permission.ADMIN)))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test/api/v1") as client:
        job = (await client.get("/jobs/emails/j")).json()
        answers = [
            json.dumps(job),
            (await client.get("/queues/emails/jobs")).text,
            (await client.get("/dead/errors")).text,
        ]
        copied = await client.post("/jobs/emails/j/retry", json={"params": job["params"]})
        as_it_was = await client.post("/jobs/emails/j/retry", json={}, params={"reason": "again"})

    assert job["params"] == {"to": "ann", "password": MASK}
    assert "params.password" in job["redacted_fields"]
    assert not [text for text in answers[:2] if "hunter2" in text or "abc" in text]
    assert (copied.status_code, copied.json()["field"]) == (422, "params")
    assert as_it_was.status_code == 201
    stored = await broker.get_job(queue, as_it_was.json()["id"])
    assert stored is not None
    assert b"hunter2!" in stored.body
    ((_, act), *_) = (await broker.acts("default")).acts
    assert act.reason == "again"
