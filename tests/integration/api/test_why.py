"""Why a job does not run, asked on a real server: by the API and by the command line."""

from __future__ import annotations

import json
from datetime import timedelta

import httpx
import pytest
from click.testing import CliRunner

from tidework.broker.redis.redis_broker import RedisBroker
from tidework.cli.commands import root
from tidework.clock import from_ms
from tidework.model.backlog import Presence
from tidework.model.identity import QueueName
from tidework.model.job import Job


@pytest.fixture
async def emails(broker: RedisBroker, namespace: str) -> QueueName:
    queue = QueueName(namespace, "emails")
    await broker.open_queue(queue)
    return queue


async def arrive(broker: RedisBroker, queue: QueueName, busy: int = 0) -> None:
    """A worker that knows `send` says that it lives."""
    await broker.announce(queue, "1", ["send"])
    presence = Presence("w.1", from_ms(0), {"slots": 2, "busy": busy})
    await broker.beat(queue, presence, ttl=timedelta(minutes=5))


async def cases(api: httpx.AsyncClient, job_id: str) -> list[str]:
    answer = await api.get(f"/jobs/emails/{job_id}/why")
    assert answer.status_code == 200, answer.text
    return [finding["code"] for finding in answer.json()["findings"]]


async def test_the_reason_changes_as_each_is_mended(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await broker.enqueue(emails, [Job("a", "send", {}, delay=60)])
    await broker.pause(emails, "the mail server moves")
    assert await cases(api, "a") == ["due_later", "paused", "no_worker"]

    await broker.promote(emails, "a")
    assert await cases(api, "a") == ["paused", "no_worker", "about_to_run"]

    await broker.resume(emails)
    await arrive(broker, emails, busy=2)
    assert await cases(api, "a") == ["all_busy"]

    await broker.cordon(emails, "w.1")
    assert await cases(api, "a") == ["all_cordoned", "about_to_run"]

    await broker.cancel(emails, "a")
    assert await cases(api, "a") == ["cancelled"]
    assert await cases(api, "nothing") == ["unknown"]


async def test_a_queue_that_is_not_there_is_not_made_by_asking(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    answer = await api.get("/jobs/emial/a/why")

    assert (answer.status_code, answer.json()["code"]) == (404, "queue_not_found")
    assert QueueName(emails.namespace, "emial") not in await broker.queues()


def ask(url: str, namespace: str, *words: str) -> tuple[int, str]:
    options = ["--redis-url", url, "--namespace", namespace]
    found = CliRunner().invoke(root, ["job", "why", *words, *options])
    return found.exit_code, found.output


async def test_the_command_finds_the_queue_by_itself(
    broker: RedisBroker, emails: QueueName, redis_url: str
) -> None:
    await broker.enqueue(emails, [Job("a", "sned", {})])
    await arrive(broker, emails)

    code, text = ask(redis_url, emails.namespace, "a")
    _, raw = ask(redis_url, emails.namespace, "a", "-o", "json")

    assert code == 0
    assert "did you mean 'send'?" in text
    findings = json.loads(raw)["findings"]
    assert [each["code"] for each in findings] == ["unknown_task", "about_to_run"]


async def test_the_command_says_so_where_nothing_is_known(
    broker: RedisBroker, emails: QueueName, redis_url: str
) -> None:
    await broker.enqueue(emails, [Job("a", "send", {})])

    unknown = ask(redis_url, emails.namespace, "b")
    elsewhere = ask(redis_url, emails.namespace, "a", "-q", "other")

    assert (unknown[0], elsewhere[0]) == (1, 1)
    assert "--queue emails" in elsewhere[1]
