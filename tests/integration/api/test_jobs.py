"""Jobs by the API: found, looked at, put in once, acted on, and refused when it is too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tidework.broker.redis.redis_broker import RedisBroker
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ClaimedJob, ExchangeRequest, Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.model.unique import Unique

ERROR = JobError("TimeoutError", "the mail server did not answer", "Traceback: ...")


class Worker:
    """Claims and settles, as a worker does."""

    def __init__(self, broker: RedisBroker, queue: QueueName) -> None:
        self.broker, self.queue, self.sequence = broker, queue, 0

    async def exchange(self, *settled: Settlement, want: int = 0) -> tuple[ClaimedJob, ...]:
        self.sequence += 1
        request = ExchangeRequest("w1", self.sequence, want, settled)
        return (await self.broker.exchange(self.queue, request)).claimed

    async def end(self, outcome: Outcome, count: int = 1) -> None:
        claimed = await self.exchange(want=count)
        await self.exchange(*(Settlement(job.id, job.token, outcome) for job in claimed))


@pytest.fixture
async def emails(broker: RedisBroker, namespace: str) -> QueueName:
    queue = QueueName(namespace, "emails")
    await broker.open_queue(queue)
    return queue


@pytest.fixture
def worker(broker: RedisBroker, emails: QueueName) -> Worker:
    return Worker(broker, emails)


async def ids(api: httpx.AsyncClient, **params: Any) -> list[str]:
    answer = await api.get("/queues/emails/jobs", params=params)
    assert answer.status_code == 200, answer.text
    return [job["id"] for job in answer.json()["items"]]


async def seed(broker: RedisBroker, worker: Worker) -> None:
    """One job in each state."""
    queue = worker.queue
    await broker.enqueue(queue, [Job("done", "send", {"to": "ann"})])
    await worker.end(Outcome.complete())
    await broker.enqueue(queue, [Job("died", "send", {"to": "bob"})])
    await worker.end(Outcome.bury(ERROR))
    await broker.enqueue(queue, [Job("dropped", "clean", {})])
    await broker.cancel(queue, "dropped")
    await broker.enqueue(queue, [Job("runs", "send", {})])
    await worker.exchange(want=1)
    await broker.enqueue(queue, [Job("waits", "send", {"to": "cleo"})])
    await broker.enqueue(queue, [Job("later", "report", {}, delay=60)])


async def test_jobs_are_found_by_state_task_error_text_and_time(
    api: httpx.AsyncClient, broker: RedisBroker, worker: Worker
) -> None:
    await seed(broker, worker)
    minute = timedelta(minutes=1)
    now = datetime.now(UTC)

    assert await ids(api) == ["runs", "waits", "later", "died", "done", "dropped"]
    assert await ids(api, state="dead") == ["died"]
    assert await ids(api, state=["dead", "ready"]) == ["waits", "died"]
    assert await ids(api, task="send") == ["runs", "waits", "died", "done"]
    assert await ids(api, task="report", state="scheduled") == ["later"]
    assert await ids(api, error=ERROR.fingerprint) == ["died"]
    assert await ids(api, text="cleo") == ["waits"]
    assert await ids(api, text="mail server") == ["died"]
    assert await ids(api, text="bob", state="ready") == []
    assert await ids(api, state="succeeded", since=(now - minute).isoformat()) == ["done"]
    assert await ids(api, state="succeeded", until=(now - minute).isoformat()) == []


async def test_pages_go_on_across_states_until_all_were_seen(
    api: httpx.AsyncClient, broker: RedisBroker, worker: Worker
) -> None:
    await seed(broker, worker)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = (await api.get("/queues/emails/jobs", params=params)).json()
        assert len(page["items"]) <= 2
        seen += [job["id"] for job in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break

    assert seen == ["runs", "waits", "later", "died", "done", "dropped"]


async def test_a_search_for_a_rare_text_goes_on_from_page_to_page(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    jobs = [Job(f"j{number:04}", "t", {"n": number}) for number in range(1500)]
    await broker.enqueue(emails, jobs)

    first = (await api.get("/queues/emails/jobs", params={"text": "j1499"})).json()
    params = {"text": "j1499", "cursor": first["next"]}
    second = (await api.get("/queues/emails/jobs", params=params)).json()

    assert (first["items"], first["looked_at"]) == ([], 1000)
    assert [job["id"] for job in second["items"]] == ["j1499"]
    assert second["next"] is None


@pytest.mark.parametrize("limit", [1, 7, 100])
async def test_a_search_reads_blocks_whatever_its_pages_hold(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName, limit: int
) -> None:
    fitting = [f"j{number:03}" for number in range(0, 300, 3)]
    await broker.enqueue(
        emails,
        [Job(f"j{n:03}", "t", {"kind": "x" if f"j{n:03}" in fitting else "y"}) for n in range(300)],
    )
    seen: list[str] = []
    params: dict[str, Any] = {"text": '"x"', "limit": limit}
    page = (await api.get("/queues/emails/jobs", params=params)).json()
    looked_at = page["looked_at"]
    while page["next"] is not None and len(seen) < 3 * limit:
        seen += [job["id"] for job in page["items"]]
        page = (
            await api.get("/queues/emails/jobs", params=params | {"cursor": page["next"]})
        ).json()
    seen += [job["id"] for job in page["items"]]

    assert seen == fitting[: len(seen)]
    assert len(seen) >= min(3 * limit, len(fitting))
    assert looked_at <= 300


async def test_long_params_are_left_out_of_a_list(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await broker.enqueue(emails, [Job("a", "t", {"text": "x" * 9000}, created_at=1.7e9)])

    (item,) = (await api.get("/queues/emails/jobs")).json()["items"]
    whole = (await api.get("/jobs/emails/a")).json()

    assert (item["params"], item["is_cut"]) == (None, True)
    assert item["created_at"] == "2023-11-14T22:13:20.000Z"
    assert len(whole["params"]["text"]) == 9000


async def test_one_job_is_told_with_all_that_is_known(
    api: httpx.AsyncClient, broker: RedisBroker, worker: Worker
) -> None:
    await broker.enqueue(worker.queue, [Job("a", "send", {"n": 2**60}, max_attempts=3)])
    await worker.end(Outcome.retry(ERROR, timedelta(hours=1)))

    found = (await api.get("/jobs/emails/a")).json()

    assert found["params"] == {"n": 2**60}
    assert (found["state"], found["attempt"], found["max_attempts"]) == ("scheduled", 1, 3)
    assert found["error"]["trace"] == "Traceback: ..."
    assert [each["end"] for each in found["history"]] == ["retry"]
    assert found["history"][0]["worker"] == "w1"


async def test_a_document_that_did_not_validate_is_shown_as_it_came(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    from tidework.broker.documents import RejectedDocument

    raw = b'{"tsk": 1}'
    await broker.transport.command("LPUSH", f"tw1:{{{emails}}}:inbox", raw)
    (found,) = await broker.intake(emails, (), (), more=1)
    rejected = RejectedDocument(found, "bad-1", JobError("EnvelopeError", "task: is missing"))
    await broker.intake(emails, (), (rejected,))

    (item,) = (await api.get("/queues/emails/jobs", params={"state": "dead"})).json()["items"]
    whole = (await api.get(f"/jobs/emails/{item['id']}")).json()

    assert (item["task"], item["params"]) == ("", None)
    assert whole["document"] == '{"tsk": 1}'


async def test_a_job_is_put_in_with_its_options(
    api: httpx.AsyncClient, broker: RedisBroker, namespace: str
) -> None:
    order = {
        "task": "send",
        "params": {"to": "ann", "big": 2**63 + 1},
        "priority": 2,
        "delay_seconds": 60,
        "max_attempts": 2,
        "timeout_seconds": 30,
        "unique": {"key": "ann"},
    }
    answer = await api.post("/queues/fresh/jobs", json=order)
    found = (await api.get(f"/jobs/fresh/{answer.json()['id']}")).json()

    assert (answer.status_code, answer.json()["inserted"]) == (201, True)
    assert found["params"] == {"to": "ann", "big": 2**63 + 1}
    assert (found["state"], found["priority"], found["unique"]) == ("scheduled", 2, "ann")
    assert (found["max_attempts"], found["timeout_seconds"]) == (2, 30)


@pytest.mark.parametrize(
    ("order", "code", "field"),
    [
        ({}, "invalid_request", "task"),
        ({"task": "no task!"}, "invalid_request", "task"),
        ({"task": "t", "parms": {}}, "invalid_request", "parms"),
        ({"task": "t", "params": []}, "invalid_request", "params"),
        ({"task": "t", "id": "no id"}, "invalid_request", "id"),
        ({"task": "t", "priority": 10}, "invalid_request", "priority"),
        ({"task": "t", "params": {"x": "y" * 300_000}}, "invalid_job", "params"),
        ({"task": "t", "unique": {"key": "a", "until": "ttl"}}, "invalid_job", "unique.ttl"),
        ({"task": "t", "available_at": "2030-01-01T00:00:00"}, "invalid_request", "available_at"),
        (
            {"task": "t", "available_at": "2030-01-01T00:00:00Z", "delay_seconds": 1},
            "invalid_job",
            "available_at",
        ),
    ],
)
async def test_an_order_that_is_not_valid_puts_nothing_in(
    api: httpx.AsyncClient,
    broker: RedisBroker,
    emails: QueueName,
    order: dict[str, Any],
    code: str,
    field: str,
) -> None:
    answer = await api.post("/queues/emails/jobs", json=order)

    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert answer.json()["field"].endswith(field)
    assert (await broker.stats(emails)).unfinished == 0


async def test_a_key_makes_one_job_however_often_it_is_sent(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    headers = {"Idempotency-Key": "order-7"}
    order = {"task": "send", "params": {"to": "ann"}}

    first = await api.post("/queues/emails/jobs", json=order, headers=headers)
    again = await api.post("/queues/emails/jobs", json=order, headers=headers)
    other = await api.post(
        "/queues/emails/jobs", json=order | {"params": {"to": "bob"}}, headers=headers
    )

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_conflict")
    urgent = await api.post("/queues/emails/jobs", json=order | {"priority": 0}, headers=headers)
    assert urgent.json()["code"] == "idempotency_conflict"
    assert (await broker.stats(emails)).unfinished == 1


async def test_a_unique_key_that_is_held_names_its_holder(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await broker.enqueue(emails, [Job("first", "t", {}, unique=Unique("k"))])
    skip = {"task": "t", "unique": {"key": "k"}}
    error = {"task": "t", "unique": {"key": "k", "on_conflict": "error"}}

    skipped = await api.post("/queues/emails/jobs", json=skip)
    refused = await api.post("/queues/emails/jobs", json=error)

    assert (skipped.status_code, skipped.json()) == (200, {"id": "first", "inserted": False})
    assert (refused.status_code, refused.json()["code"]) == (409, "unique_conflict")


async def test_a_job_is_cancelled_promoted_replayed_and_deleted(
    api: httpx.AsyncClient, broker: RedisBroker, worker: Worker
) -> None:
    await seed(broker, worker)

    async def act(method: str, path: str) -> tuple[int, str]:
        answer = await api.request(method, f"/jobs/emails/{path}")
        return answer.status_code, answer.json().get("answer") or answer.json()["code"]

    assert await act("POST", "runs/cancel") == (200, "requested")
    assert await act("POST", "later/promote") == (200, "promoted")
    assert await act("POST", "died/replay") == (200, "replayed")
    assert await act("POST", "waits/cancel") == (200, "cancelled")
    assert await act("DELETE", "done") == (200, "deleted")
    assert await act("DELETE", "later") == (200, "deleted")
    assert await act("DELETE", "later") == (404, "job_not_found")
    assert await ids(api) == ["runs", "died", "waits", "dropped"]

    assert await act("POST", "waits/cancel") == (409, "job_state")
    assert await act("POST", "died/promote") == (409, "job_state")
    assert await act("POST", "dropped/replay") == (409, "job_state")
    assert await act("DELETE", "runs") == (409, "job_state")
    assert await act("POST", "nothing/cancel") == (404, "job_not_found")
    assert (await api.get("/jobs/emails/done")).json()["code"] == "job_forgotten"


async def test_a_dead_letter_is_retried_with_mended_params(
    api: httpx.AsyncClient, broker: RedisBroker, worker: Worker
) -> None:
    await broker.enqueue(worker.queue, [Job("died", "send", {"to": "bbo"}, max_attempts=2)])
    await worker.end(Outcome.bury(ERROR))

    answer = await api.post("/jobs/emails/died/retry", json={"params": {"to": "bob"}})
    found = (await api.get(f"/jobs/emails/{answer.json()['id']}")).json()

    assert answer.status_code == 201
    assert (found["params"], found["retry_of"]) == ({"to": "bob"}, "died")
    assert (found["state"], found["max_attempts"]) == ("ready", 2)
    assert (await api.get("/jobs/emails/died")).json()["state"] == "dead"


async def test_a_job_that_has_not_ended_is_not_retried(
    api: httpx.AsyncClient, broker: RedisBroker, emails: QueueName
) -> None:
    await broker.enqueue(emails, [Job("a", "t", {})])

    answer = await api.post("/jobs/emails/a/retry", json={})

    assert (answer.status_code, answer.json()["code"]) == (409, "job_state")


async def test_dead_letters_are_grouped_by_their_error(
    api: httpx.AsyncClient, broker: RedisBroker, worker: Worker
) -> None:
    await broker.enqueue(worker.queue, [Job("a", "t", {}), Job("b", "t", {})])
    await worker.end(Outcome.bury(ERROR), count=2)

    (group,) = (await api.get("/dead/errors")).json()["items"]

    assert (group["queue"], group["count"], group["type"]) == ("emails", 2, "TimeoutError")
    assert (await api.get("/dead/errors", params={"queue": "other"})).json()["items"] == []


async def test_a_queue_is_paused_with_a_reason_and_resumed(
    api: httpx.AsyncClient, emails: QueueName
) -> None:
    paused = await api.post("/queues/emails/pause", json={"reason": "the mail server moves"})
    again = await api.post("/queues/emails/pause", json={"reason": "other"})
    resumed = await api.post("/queues/emails/resume")

    assert paused.json()["pause"]["reason"] == "the mail server moves"
    assert again.json()["pause"]["reason"] == "the mail server moves"
    assert resumed.json()["pause"] is None
