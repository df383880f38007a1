"""Probes and metrics over real HTTP; what they say depends on the loop, never on Redis."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.worker.children import PoolBench
from tidework.clock import ManualClock
from tidework.errors import ConfigurationError
from tidework.metrics import MetricsPage, WorkerNumbers
from tidework.probes import ProbeServer
from tidework.worker.health import WorkerHealth


class Answers:
    """A Health that a test sets."""

    def __init__(self) -> None:
        self.reason = ""

    def livez(self) -> str:
        return self.reason

    def readyz(self) -> str:
        return self.reason

    def redisz(self) -> str:
        return self.reason

    def metrics(self) -> bytes:
        return b"page"


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def port(answers: Answers) -> Iterator[int]:
    server = ProbeServer("127.0.0.1", 0, answers)
    yield server.port
    server.close()


def test_a_yes_and_a_no_with_its_reason(port: int, answers: Answers) -> None:
    assert get(port, "/livez") == (200, "ok\n")
    answers.reason = "draining"
    assert get(port, "/readyz?verbose=1") == (503, "draining\n")
    assert get(port, "/metrics") == (200, "page")


def test_another_path_says_what_there_is(port: int) -> None:
    status, text = get(port, "/health")

    assert status == 404
    assert "/livez" in text


def test_a_taken_port_is_a_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(ConfigurationError, match=f"127.0.0.1:{port}.*--probe-port"):
            ProbeServer("127.0.0.1", port, Answers())


def test_closing_ends_the_thread_and_frees_the_port() -> None:
    server = ProbeServer("127.0.0.1", 0, Answers())

    server.close()

    assert not server._thread.is_alive()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", server.port))


@pytest.fixture
async def health() -> WorkerHealth:
    bench = PoolBench()
    return WorkerHealth(
        bench.pool, WorkerNumbers("1", 1), ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    )


async def test_ready_after_redis_and_the_application_until_the_drain(health: WorkerHealth) -> None:
    assert "application" in health.readyz()
    health.app_imported = True
    assert "Redis" in health.readyz()
    health.redis_answered = True
    assert health.readyz() == ""
    health.draining = True
    assert health.readyz() == "draining"
    assert health.livez() == ""


async def test_alive_while_the_loop_turns(health: WorkerHealth) -> None:
    clock = health._clock
    assert isinstance(clock, ManualClock)
    clock.advance(timedelta(seconds=11))
    assert "loop has not turned" in health.livez()

    await health._tick()

    assert health.livez() == ""


async def test_not_alive_with_a_killed_child_that_does_not_end(
    health: WorkerHealth, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = health._clock
    assert isinstance(clock, ManualClock)
    monkeypatch.setattr(health._pool, "unreaped_since", clock.monotonic)
    await health._tick()
    clock.advance(timedelta(seconds=4))
    assert health.livez() == ""
    clock.advance(timedelta(seconds=2))

    assert "has not ended" in health.livez()


async def test_the_metrics_page_tells_every_number() -> None:
    numbers = WorkerNumbers("1.2.3", 4, lambda: 3)
    numbers.jobs["succeeded"]["emails", "send"] += 2
    numbers.jobs["lost"]["emails", "send"] += 1
    for seconds in (0.002, 0.2, 10_000.0):
        numbers.run_seconds["emails", "send"].note(seconds)
    numbers.redis_errors["BrokerUnavailableError"] += 5
    numbers.rejected["emails"] += 1
    numbers.last_heartbeat_at = 17.0

    text = MetricsPage(numbers).text().decode()

    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    task = (("queue", "emails"), ("task", "send"))
    assert found["tidework_jobs_succeeded_total", *task] == 2
    assert found["tidework_jobs_lost_total", *task] == 1
    assert found["tidework_job_run_seconds_count", *task] == 3
    assert found["tidework_job_run_seconds_bucket", ("le", "0.5"), *task] == 2
    assert found["tidework_job_run_seconds_bucket", ("le", "+Inf"), *task] == 3
    assert found["tidework_worker_slots", ("state", "busy")] == 3
    assert found["tidework_worker_slots", ("state", "idle")] == 1
    assert found["tidework_redis_errors_total", ("error", "BrokerUnavailableError")] == 5
    assert found["tidework_documents_rejected_total", ("queue", "emails")] == 1
    assert found["tidework_worker_last_heartbeat_timestamp_seconds",] == 17
    assert found["tidework_build_info", ("version", "1.2.3")] == 1


async def test_the_page_can_be_read_while_the_loop_counts() -> None:
    numbers = WorkerNumbers("1", 1)
    page = MetricsPage(numbers)
    stop = threading.Event()
    faults: list[Exception] = []

    def read() -> None:
        while not stop.is_set():
            try:
                page.text()
            except Exception as error:
                faults.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(3000):
        numbers.jobs["succeeded"]["q", f"t{number}"] += 1
        if not number % 100:
            await asyncio.sleep(0)
    stop.set()
    reader.join()

    assert faults == []
