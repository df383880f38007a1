"""Statistics by the API: series, the last hour and day, the tasks of a queue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tidework.broker.redis.redis_broker import RedisBroker
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest, RunTimes, Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.model.statistics import bucket_of

NOTHING = {"mean": None, "p50": None, "p95": None, "p99": None}


@pytest.fixture
def emails(namespace: str) -> QueueName:
    return QueueName(namespace, "emails")


async def run(broker: RedisBroker, queue: QueueName, *tasks: str, fails: bool = False) -> None:
    """Jobs of these tasks come, and end after a quarter of a second each."""
    await broker.open_queue(queue)
    await broker.announce(queue, "v1", tasks)
    await broker.enqueue(queue, [Job(f"{queue}-{task}", task, {}) for task in tasks])
    reply = await broker.exchange(queue, ExchangeRequest("w", 1, len(tasks)))
    outcome = Outcome.bury(JobError("E", "m")) if fails else Outcome.complete()
    ends = tuple(Settlement(found.id, found.token, outcome) for found in reply.claimed)
    ran = {task: RunTimes(1, 0.25, {bucket_of(0.25): 1}) for task in tasks}
    await broker.exchange(queue, ExchangeRequest("w", 2, 0, ends, served=ran))


async def test_a_series_has_the_points_of_its_step(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await run(broker, emails, "send", "tidy")

    for step, seconds in (("minute", 60), ("hour", 3600), ("day", 86_400)):
        found = (await api.get("/stats", params={"queue": "emails", "step": step})).json()
        assert (found["queue"], found["task"], found["step"]) == ("emails", "(all)", step)
        assert found["step_seconds"] == seconds
        points = found["points"]
        assert sum(point["enqueued"] for point in points) == 2
        for point in points:
            assert datetime.fromisoformat(point["at"]).timestamp() % seconds == 0
            assert point["at"].endswith("Z")
        assert found["last_hour"] == found["last_day"]
        assert (found["last_hour"]["started"], found["last_hour"]["success_rate"]) == (2, 1.0)
        assert found["last_hour"]["run_seconds"]["mean"] == 0.25


async def test_one_task_of_one_queue_or_all_of_all(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName, namespace: str
) -> None:
    await run(broker, emails, "send", "tidy")
    await run(broker, QueueName(namespace, "reports"), "send", fails=True)
    await run(broker, QueueName(f"{namespace}-other", "emails"), "send")

    async def hour(**params: str) -> tuple[int, int, float]:
        found = (await api.get("/stats", params=params)).json()
        assert (
            sum(point["succeeded"] for point in found["points"]) == found["last_hour"]["succeeded"]
        )
        found = found["last_hour"]
        return found["succeeded"], found["dead"], round(found["success_rate"], 3)

    assert await hour(queue="emails", task="send") == (1, 0, 1.0)
    assert await hour(queue="reports") == (0, 1, 0.0)
    assert await hour(task="send") == (1, 1, 0.5)
    assert await hour() == (2, 1, 0.667)
    assert await hour(namespace=f"{namespace}-other") == (1, 0, 1.0)


async def test_what_never_happened_has_no_points_and_no_rates(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await broker.open_queue(emails)

    found = (await api.get("/stats", params={"queue": "emails", "task": "send"})).json()

    assert found["points"] == []
    assert (found["last_day"]["enqueued"], found["last_day"]["success_rate"]) == (0, None)
    assert found["last_day"]["wait_seconds"] == NOTHING


async def test_a_series_has_bounds(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await run(broker, emails, "send")
    now = datetime.now(UTC)
    before, after = now - timedelta(minutes=5), now + timedelta(minutes=5)

    async def number(**bounds: datetime) -> int:
        params = {name: moment.isoformat() for name, moment in bounds.items()}
        found = (await api.get("/stats", params={"queue": "emails"} | params)).json()
        return sum(point["enqueued"] for point in found["points"])

    assert await number(since=before, until=after) == 1
    assert await number(until=before) == 0
    assert await number(since=after) == 0


@pytest.mark.parametrize(
    "params",
    [
        {"step": "week"},
        {"since": "yesterday"},
        {"since": "2026-12-01T12:00:00"},
        {"since": "2026-12-02T00:00:00Z", "until": "2026-12-01T00:00:00Z"},
        {"queue": "No"},
        {"tasks": "send"},
    ],
)
async def test_a_series_that_cannot_be_is_refused(
    api: httpx.AsyncClient, params: dict[str, str]
) -> None:
    answer = await api.get("/stats", params=params)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


async def test_a_queue_that_is_not_there_has_none(api: httpx.AsyncClient) -> None:
    for path in ("/stats?queue=nobody", "/queues/nobody/tasks"):
        answer = await api.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "queue_not_found")


async def test_the_tasks_of_a_queue_come_page_by_page(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await run(broker, emails, "send", "tidy")
    await broker.announce(emails, "v2", ["report"])

    first = (await api.get("/queues/emails/tasks", params={"limit": 2})).json()
    second = (await api.get("/queues/emails/tasks", params={"cursor": first["next"]})).json()
    items = {each["task"]: each for each in first["items"] + second["items"]}

    assert list(items) == ["(all)", "report", "send", "tidy"]
    assert second["next"] is None
    assert [each["announced"] for each in items.values()] == [False, True, True, True]
    assert [each["last_hour"]["succeeded"] for each in items.values()] == [2, 0, 1, 1]
    assert items["send"]["per_minute"] == pytest.approx(1 / 60)
