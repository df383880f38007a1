"""Workers and scaling by the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from tidework.broker.redis.redis_broker import RedisBroker
from tidework.clock import from_ms
from tidework.model.backlog import Presence
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.scaled import Scaled


@pytest.fixture
async def emails(broker: RedisBroker, namespace: str) -> QueueName:
    queue = QueueName(namespace, "emails")
    await broker.open_queue(queue)
    return queue


async def arrive(broker: RedisBroker, queue: QueueName, name: str, **said: Any) -> None:
    document = {"slots": 2, "busy": 0} | said
    await broker.beat(queue, Presence(name, from_ms(0), document), ttl=timedelta(minutes=5))


async def test_a_worker_tells_what_it_runs(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    job = {"slot": 1, "id": "a", "task": "send", "queue": "emails", "attempt": 2, "since": 1.7e9}
    await arrive(broker, emails, "pod-1.0a", node="n1", version="7", busy=1, jobs=[job])

    (found,) = (await api.get("/workers")).json()["items"]

    assert (found["incarnation"], found["name"], found["state"]) == ("pod-1.0a", "pod-1", "working")
    assert (found["node"], found["version"], found["busy"]) == ("n1", "7", 1)
    assert found["jobs"][0]["since"] == "2023-11-14T22:13:20.000Z"
    assert (await api.get("/workers/pod-1")).json()["incarnation"] == "pod-1.0a"


async def test_a_worker_that_says_nonsense_is_shown(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    nonsense = {"slots": "two", "jobs": [1, {"since": 1e30, "id": []}], "started_at": True}
    await arrive(broker, emails, "w.1", **nonsense)

    (found,) = (await api.get("/workers")).json()["items"]

    assert (found["slots"], found["started_at"]) == (None, None)
    assert [job["id"] for job in found["jobs"]] == [""]


async def test_workers_come_page_by_page_and_of_one_queue(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    other = QueueName(emails.namespace, "other")
    await broker.open_queue(other)
    for name in ("a.1", "b.1", "c.1"):
        await arrive(broker, emails, name)
    await arrive(broker, other, "a.1")

    first = (await api.get("/workers", params={"limit": 2})).json()
    second = (await api.get("/workers", params={"cursor": first["next"]})).json()
    of_other = (await api.get("/workers", params={"queue": "other"})).json()

    assert [each["name"] for each in first["items"] + second["items"]] == ["a", "b", "c"]
    assert first["items"][0]["queues"] == ["emails", "other"]
    assert [each["name"] for each in of_other["items"]] == ["a"]


async def test_a_worker_is_drained_and_let_go_again(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await arrive(broker, emails, "w.1")

    drained = (await api.post("/workers/w/drain")).json()
    again = (await api.post("/workers/w.1/drain")).json()
    shown = (await api.get("/workers/w")).json()
    undone = (await api.post("/workers/w/undrain")).json()

    assert (drained["leases"], drained["was_drained"], again["was_drained"]) == (0, False, True)
    assert (shown["state"], shown["cordoned_by"]) == ("cordoned", ["person"])
    assert (undone["was_drained"], undone["still_cordoned"]) == (True, False)


async def test_a_worker_that_is_not_there_is_not_found(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await arrive(broker, emails, "w.1")

    answer = await api.post("/workers/v/drain")

    assert (answer.status_code, answer.json()["code"]) == (404, "worker_not_found")
    assert "w.1" in answer.json()["detail"]


async def test_decisions_are_told_with_their_reasons(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await broker.enqueue(emails, [Job("a", "t", {})])
    before = (await api.get("/queues/emails")).json()
    term = await broker.take_term(emails)
    step = Scaled(0, 1, 1, "1 waiting -> 1", (), 1, 0)
    await broker.note_scaling(emails, term, step, is_step=True)

    found = (await api.get("/scaling/emails")).json()
    queue = (await api.get("/queues/emails")).json()

    assert (before["scaling"], before["has_no_worker"]) == (None, True)
    assert [each["reason"] for each in found["steps"]] == ["1 waiting -> 1"]
    assert found["latest"] == found["steps"][0] == queue["scaling"]
