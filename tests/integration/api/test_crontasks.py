"""CronTasks by the API: how they stand, their runs, and what people do with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tidework.access.access import Everybody
from tidework.access.caller import Permission
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.clock import from_ms
from tidework.model.fire import ConcurrencyPolicy, FireRequest, Verdict, fire_id
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest, Settlement
from tidework.model.outcome import Outcome

DECIDED = 1_700_000_000  # 2023-11-14T22:13:20Z


@pytest.fixture
def queue(namespace: str) -> QueueName:
    return QueueName(namespace, "emails")


async def put(broker: RedisBroker, queue: QueueName, **specs: Mapping[str, Any]) -> int:
    """CronTasks by name: what differs in their spec. Their uid is the name; the term."""
    await broker.open_queue(queue)
    term = await broker.take_term(queue)
    documents = {}
    for name, spec in specs.items():
        timing = {} if "schedule" in spec else {"every": "1h"}
        document = {
            "apiVersion": "tidework.dev/v1alpha1",
            "kind": "CronTask",
            "metadata": {"name": name, "namespace": queue.namespace, "uid": name},
            "spec": {"queue": queue.name, "task": "send", **timing, **spec},
        }
        documents[name] = json.dumps(document).encode()
    await broker.put_crontasks(queue, term, documents)
    for name in specs:
        await broker.admit_cron(queue, term, name, "f", DECIDED, reset=False)
    return term


async def decide(
    broker: RedisBroker, queue: QueueName, term: int, *verdicts: Verdict, uid: str = "hourly"
) -> None:
    for i, verdict in enumerate(verdicts, start=1):
        at = DECIDED + 60 * i
        job = Job(fire_id(uid, at), "send", {}) if verdict is Verdict.ENQUEUED else None
        await broker.decide_fires(queue, term, [FireRequest(uid, "f", at, verdict, job=job)])


async def run_all(broker: RedisBroker, queue: QueueName) -> None:
    for sequence in range(1, 100, 2):
        reply = await broker.exchange(queue, ExchangeRequest("w", sequence, 10))
        if not reply.claimed:
            return
        ends = tuple(Settlement(job.id, job.token, Outcome.complete()) for job in reply.claimed)
        await broker.exchange(queue, ExchangeRequest("w", sequence + 1, 0, ends))


async def test_a_crontask_tells_when_it_fires_and_why_not(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName
) -> None:
    daily = {"schedule": "0 6 * * *", "timeZone": "Asia/Shanghai"}
    term = await put(broker, queue, daily=daily, resting={"suspend": True})
    await decide(broker, queue, term, Verdict.MISSED_DEADLINE, Verdict.ENQUEUED, uid="daily")

    first, second = (await api.get("/crontasks")).json()["items"]

    assert (first["name"], first["schedule"], first["task"]) == ("daily", "0 6 * * *", "send")
    assert first["schedule_in_words"] == "At 06:00"
    assert (first["time_zone"], len(first["next_fires"])) == ("Asia/Shanghai", 5)
    upcoming = first["next_fires"][0]
    assert upcoming["at"].endswith("T22:00:00.000Z")
    assert upcoming["local"].endswith("T06:00:00+08:00")
    assert (first["verdicts"]["enqueued"], first["verdicts"]["missed_deadline"]) == (1, 1)
    assert first["last_fire"] == "2023-11-14T22:15:20.000Z"
    assert first["active"] == [first["last_job"]]
    assert (first["suspended"], first["reason"]) == (False, "")
    assert (second["suspended"], second["suspended_by_document"]) == (True, True)
    assert second["reason"] == "suspended; it fires again once spec.suspend is false"
    assert second["next_fires"] == []


async def test_crontasks_come_page_by_page_and_of_one_namespace(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName, namespace: str
) -> None:
    await put(broker, queue, a={}, c={})
    await put(broker, QueueName(namespace, "reports"), b={})
    await put(broker, QueueName(f"{namespace}-other", "emails"), d={})

    first = (await api.get("/crontasks", params={"limit": 2})).json()
    second = (await api.get("/crontasks", params={"limit": 2, "cursor": first["next"]})).json()
    other = (await api.get("/crontasks", params={"namespace": f"{namespace}-other"})).json()

    assert [found["name"] for found in first["items"]] == ["a", "b"]
    assert ([found["name"] for found in second["items"]], second["next"]) == (["c"], None)
    assert [found["name"] for found in other["items"]] == ["d"]


async def test_one_that_a_later_version_wrote_hides_no_other(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName
) -> None:
    await put(broker, queue, hourly={}, newer={"untilTheMoon": True})

    found = (await api.get("/crontasks")).json()

    assert [item["name"] for item in found["items"]] == ["hourly"]
    (told,) = found["unreadable"]
    assert (told["name"], told["queue"]) == ("newer", "emails")
    assert "untilTheMoon" in told["reason"]


async def test_a_secret_of_its_params_is_not_shown_and_the_mask_is_no_value(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName
) -> None:
    await put(broker, queue, hourly={"params": {"to": "ann", "token": "hunter2"}})

    answer = await api.get("/crontasks/hourly")
    params = answer.json()["spec"]["params"]
    refused = await api.post("/crontasks/hourly/run", json={"params": params})

    assert "hunter2" not in answer.text
    assert answer.json()["redacted_fields"] == ["params.token"]
    assert (params["to"], refused.status_code) == ("ann", 422)


async def test_one_crontask_has_its_spec_and_what_its_runs_add_up_to(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName
) -> None:
    term = await put(broker, queue, hourly={"params": {"to": "all"}})
    await decide(broker, queue, term, Verdict.ENQUEUED, Verdict.MISSED_CATCH_UP)
    await run_all(broker, queue)

    found = (await api.get("/crontasks/hourly")).json()

    assert found["spec"]["params"] == {"to": "all"}
    assert (found["runs"]["success_rate"], found["runs"]["succeeded"]) == (1.0, 1)
    assert found["runs"]["without_job"] == 1
    assert found["runs"]["mean_duration_seconds"] >= 0


async def test_runs_come_newest_first_page_by_page(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName
) -> None:
    term = await put(broker, queue, hourly={})
    runs = [Verdict.ENQUEUED, Verdict.MISSED_DEADLINE] * 3
    await decide(broker, queue, term, *runs)
    await run_all(broker, queue)

    seen: list[dict[str, Any]] = []
    cursor = None
    while cursor is not None or not seen:
        params = {"limit": 1} | ({} if cursor is None else {"cursor": cursor})
        page = (await api.get("/crontasks/hourly/runs", params=params)).json()
        seen += page["items"]
        cursor = page["next"]
        assert page["summary"]["succeeded"] == 3

    dues = [entry["due"] for entry in seen]
    assert dues == sorted(dues, reverse=True)
    assert len(dues) == 6
    newest = next(entry for entry in seen if entry["job"])
    assert (newest["kind"], newest["outcome"], newest["attempts"]) == ("schedule", "succeeded", 1)
    assert newest["lateness_seconds"] > 0
    assert newest["start_delay_seconds"] >= newest["lateness_seconds"]
    assert newest["duration_seconds"] >= 0


async def test_a_run_by_hand_with_other_params_is_in_the_history_with_its_reason(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName
) -> None:
    await put(broker, queue, hourly={"params": {"to": "all"}})

    order = {"params": {"to": "ada"}, "reason": "she asked"}
    answer = await api.post("/crontasks/hourly/run", json=order)

    assert (answer.status_code, answer.json()["created"]) == (201, True)
    job = await broker.get_job(queue, answer.json()["job"])
    assert job is not None
    assert json.loads(job.body)["params"] == {"to": "ada"}
    (entry,) = (await api.get("/crontasks/hourly/runs")).json()["items"]
    assert (entry["kind"], entry["note"]) == ("by_hand", "anonymous: she asked")


async def test_one_idempotency_key_makes_one_run(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName
) -> None:
    await put(broker, queue, hourly={})
    headers = {"Idempotency-Key": "k1"}

    first = await api.post("/crontasks/hourly/run", headers=headers)
    again = await api.post("/crontasks/hourly/run", headers=headers)
    other = await api.post("/crontasks/hourly/run")

    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 201)
    assert again.json() == {"job": first.json()["job"], "created": False}
    assert other.json()["job"] != first.json()["job"]
    changed = {"params": {"to": "ada"}}
    refused = await api.post("/crontasks/hourly/run", headers=headers, json=changed)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_conflict")


async def test_a_person_suspends_and_resumes(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName
) -> None:
    await put(broker, queue, hourly={})
    until = (datetime.now(UTC) + timedelta(hours=2)).isoformat()

    order = {"reason": "a repair", "until": until}
    held = await api.post("/crontasks/hourly/suspend", json=order)
    again = await api.post("/crontasks/hourly/suspend", json=order)
    other = await api.post("/crontasks/hourly/suspend", json={"reason": "mine"})

    assert (held.status_code, held.json()["by"]) == (200, "anonymous")
    assert again.json() == held.json()
    assert (other.status_code, other.json()["code"]) == (409, "already_suspended")
    assert "a repair" in other.json()["detail"]
    found = (await api.get("/crontasks/hourly")).json()
    assert (found["suspended"], found["suspension"]) == (True, held.json())
    assert found["reason"].endswith(": a repair")
    ended = (await api.post("/crontasks/hourly/resume")).json()
    assert ended == {"resumed": True, "suspension": held.json()}
    ended = (await api.post("/crontasks/hourly/resume")).json()
    assert ended == {"resumed": False, "suspension": None}


async def test_what_its_document_suspends_is_not_resumed(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName
) -> None:
    await put(broker, queue, hourly={"suspend": True})
    answer = await api.post("/crontasks/hourly/resume")
    assert (answer.status_code, answer.json()["code"]) == (409, "suspended_by_document")
    assert "kubectl patch crontask hourly" in answer.json()["detail"]


async def test_a_backfill_is_shown_and_then_runs_each_instant_once(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName
) -> None:
    await put(broker, queue, hourly={})
    order = {"since": "2023-11-14T20:00:00Z", "reason": "lost"}

    shown = (await api.post("/crontasks/hourly/backfill", json=order | {"dry_run": True})).json()
    assert shown["fires"] == [f"2023-11-14T{hour}:00:00.000Z" for hour in (20, 21, 22)]
    assert (shown["count"], shown["left"], shown["enqueued"]) == (3, 3, 0)
    assert shown["decided_until"] == "2023-11-14T22:13:20.000Z"
    assert (await api.get("/crontasks/hourly/runs")).json()["items"] == []

    done = (await api.post("/crontasks/hourly/backfill", json=order)).json()
    assert (done["enqueued"], done["known"], done["left"]) == (3, 0, 0)
    done = (await api.post("/crontasks/hourly/backfill", json=order)).json()
    assert (done["enqueued"], done["known"], done["left"]) == (0, 3, 0)


async def test_a_backfill_of_runs_that_may_not_overlap_says_what_it_waits_for(
    api: httpx.AsyncClient, broker: RedisBroker, queue: QueueName
) -> None:
    await put(broker, queue, hourly={"concurrencyPolicy": ConcurrencyPolicy.FORBID.value})
    order = {"since": "2023-11-14T20:00:00Z"}

    first = (await api.post("/crontasks/hourly/backfill", json=order)).json()
    assert (first["one_at_a_time"], first["enqueued"], first["left"]) == (True, 1, 2)
    at = int(datetime(2023, 11, 14, 20, tzinfo=UTC).timestamp())
    assert first["waits_for"] == fire_id("hourly", at)
    await run_all(broker, queue)
    second = (await api.post("/crontasks/hourly/backfill", json=order)).json()
    assert (second["enqueued"], second["known"], second["left"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("method", "path", "order", "status", "told"),
    [
        ("GET", "/crontasks/hurly", None, 404, "did you mean 'hourly'?"),
        ("GET", "/crontasks/No", None, 422, "path crontask"),
        ("GET", "/crontasks/hurly/runs", None, 404, "did you mean"),
        ("GET", "/crontasks/hourly/runs?cursor=x", None, 422, "is not one that this list"),
        ("POST", "/crontasks/hourly/suspend", {}, 422, "reason"),
        ("POST", "/crontasks/hourly/suspend", {"reason": " "}, 422, "a reason is needed"),
        (
            "POST",
            "/crontasks/hourly/suspend",
            {"reason": "x", "until": "2020-01-01T00:00:00Z"},
            422,
            "has passed",
        ),
        (
            "POST",
            "/crontasks/hourly/suspend",
            {"reason": "x", "until": "9999-12-31T23:59:59-12:00"},
            422,
            "beyond the year",
        ),
        (
            "POST",
            "/crontasks/hourly/backfill",
            {"since": "0001-01-01T00:00:00+14:00"},
            422,
            "outside of the years",
        ),
        (
            "POST",
            "/crontasks/hourly/backfill",
            {"since": "2023-11-14T20:00:00Z", "until": "9999-12-31T23:59:59-12:00"},
            422,
            "outside of the years",
        ),
        ("POST", "/crontasks/hourly/run", {"parms": {}}, 422, "parms"),
        ("POST", "/crontasks/hourly/backfill", {"since": "2023-11-14"}, 422, "since"),
        ("POST", "/crontasks/hourly/backfill", {"since": "1990-01-01T00:00Z"}, 422, "more than"),
    ],
)
async def test_what_is_refused(
    api: httpx.AsyncClient,
    broker: RedisBroker,
    queue: QueueName,
    method: str,
    path: str,
    order: dict[str, Any] | None,
    status: int,
    told: str,
) -> None:
    await put(broker, queue, hourly={})
    answer = await api.request(method, path, json=order)
    assert answer.status_code == status
    assert told in answer.json()["detail"]


async def test_who_may_look_may_not_act(
    broker: RedisBroker, queue: QueueName, namespace: str
) -> None:
    await put(broker, queue, hourly={})
    app = create_api(ApiContext(broker, Everybody(Permission.VIEWER), namespace))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    address = "http://test/api/v1"
    order = {"reason": "x", "since": "2023-11-14T20:00:00Z"}
    async with httpx.AsyncClient(transport=transport, base_url=address) as viewer:
        assert (await viewer.get("/crontasks/hourly")).status_code == 200
        assert (await viewer.get("/crontasks/hourly/runs")).status_code == 200
        for act in ("run", "suspend", "resume", "backfill"):
            assert (await viewer.post(f"/crontasks/hourly/{act}", json=order)).status_code == 403
    record = await broker.cron_record(queue, "hourly")
    assert record is not None
    assert (record.suspension, record.by_hand, record.active) == (None, 0, ())
    assert record.watermark == int(from_ms(DECIDED * 1000).timestamp())
