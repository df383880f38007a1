"""What foreign programs may do to a worker by way of its inbox: fill the server, send too much."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess
from tests.support.servers import ValkeyServer
from tests.support.waiting import wait_until
from tidework.broker.connection.transport import drive
from tidework.broker.documents import MAX_DOCUMENT_BYTES
from tidework.client import Client
from tidework.model.job import JobState
from tidework.settings import Settings

MIB = 1024 * 1024


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as found:
        yield found


@pytest.fixture
def own_jobs(server: ValkeyServer, namespace: str) -> Jobs:
    return Jobs(Client(Settings(redis_url=server.url, namespace=namespace)))


def fill(client: redis.Redis, key: str) -> int:
    """Documents of 2 kB until the server takes no more; their number."""
    room = int(client.info("memory")["used_memory"]) + 3 * MIB
    client.config_set("maxmemory", room)
    number = 0
    while True:
        params = {"a": number, "b": 0}
        document = {"id": f"d{number}", "task": "add", "params": params, "x-y": "x" * 2000}
        try:
            client.lpush(key, json.dumps(document))
        except redis.exceptions.OutOfMemoryError:
            return number
        number += 1


@pytest.mark.timeout(120)
def test_a_server_that_is_full_of_documents_is_worked_off(
    server: ValkeyServer, start_worker: StartWorker, own_jobs: Jobs, namespace: str
) -> None:
    client = own_jobs.client
    drive(client.blocking_broker().open_queue(client.queue("jobs")))
    with server.client() as foreign:
        number = fill(foreign, f"tw1:{{{namespace}/jobs}}:inbox")
        assert number > 500
        start_worker(redis_url=server.url, slots=2)

        def is_done() -> bool:
            stats = client.stats_sync("jobs")
            return stats.states[JobState.SUCCEEDED] == number and not stats.inbox

        wait_until(is_done, f"all {number} are done", 100)
        used = int(foreign.info("memory")["used_memory"])
        most = int(foreign.config_get("maxmemory")["maxmemory"])
    assert used < most + MIB + number * 500, "a job needs little more than its document"


def memory(worker: WorkerProcess, what: str) -> int:
    """Of the supervisor, in bytes. what: VmHWM = the most it ever had, VmRSS = what it has"""
    text = Path(f"/proc/{worker.pid}/status").read_text()
    (found,) = [line.split()[1] for line in text.splitlines() if line.startswith(f"{what}:")]
    return int(found) * 1024


NESTED = b'{"id":"order-9","task":"add","params":{"a":[' + b"[],"
LARGE = {
    "flat": NESTED + b'"' + b"x" * 48 * MIB + b'"]}}',
    "nested": b"[" * 24 * MIB + b"]" * 24 * MIB,
    "many arrays": NESTED + b"[]," * 16 * MIB + b"0]}}",
}


@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("first", [True, False], ids=["waited for", "among others"])
def test_a_document_of_48_mb_is_refused_without_being_read(
    start_worker: StartWorker, jobs: Jobs, kind: str, first: bool
) -> None:
    worker = start_worker().wait_started()
    assert jobs.result(jobs.put("add", a=1, b=1)) == 2
    before = memory(worker, "VmHWM")

    if first:
        wait_until(jobs.listeners, "the worker waits at the inbox")
        jobs.put_document(LARGE[kind])
    else:
        jobs.put_documents(b'{"id":"before","task":"add","params":{"a":1,"b":2}}', LARGE[kind])
        assert jobs.result("before") == 3

    error = worker.wait_event("document_refused")
    assert f"it has {len(LARGE[kind])} bytes" in error["error"]
    letter = jobs.wait_dead(error["job_id"])
    assert letter.body == LARGE[kind][:4096]
    if kind != "nested":
        assert letter.id == "order-9"
    assert jobs.result(jobs.put("add", a=2, b=2)) == 4, "it works on"
    assert memory(worker, "VmHWM") < before + 16 * MIB


@pytest.mark.parametrize(
    "filling", [b"[" * 400_000, b"[]," * 300_000 + b"0", b'"\\u0041",' * 100_000 + b"0"]
)
def test_the_largest_documents_that_are_read_leave_nothing_behind(
    start_worker: StartWorker, jobs: Jobs, filling: bytes
) -> None:
    worker = start_worker().wait_started()
    assert jobs.result(jobs.put("add", a=1, b=1)) == 2
    before = memory(worker, "VmRSS")

    raw = b'{"id":"order-%d","task":"add","params":{"a":[' + filling + b"]}}"
    assert len(raw) < MAX_DOCUMENT_BYTES
    jobs.put_documents(*(raw % number for number in range(12)))
    worker.wait_event("document_refused", 12)

    assert jobs.wait_dead("order-11").body == raw % 11
    assert memory(worker, "VmHWM") < before + 128 * MIB
    wait_until(lambda: memory(worker, "VmRSS") < before + 32 * MIB, "it gives the memory back")
