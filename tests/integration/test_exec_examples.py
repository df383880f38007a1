"""examples/exec-tasks: tasks in shell, PHP and Node, and a producer in PHP, run as they stand."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess
from tests.support.fixtures import namespace, redis_url, valkey
from tests.support.waiting import wait_until
from tidework.client import Client
from tidework.errors import JobNotFoundError
from tidework.manifests import read_manifests
from tidework.model.backlog import JobRecord
from tidework.model.job import JobState
from tidework.settings import Settings

__all__ = ["namespace", "redis_url", "valkey"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "exec-tasks"
needs_php = pytest.mark.skipif(
    shutil.which("php") is None, reason="needs php on the PATH (Debian: php-cli)"
)
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node on the PATH")


@pytest.fixture
def jobs(redis_url: str, namespace: str) -> Jobs:
    return Jobs(Client(Settings(redis_url=redis_url, namespace=namespace)), "reports")


@pytest.fixture
def worker(redis_url: str, namespace: str, tmp_path: Path) -> Iterator[WorkerProcess]:
    settings = {"redis_url": redis_url, "namespace": namespace, "queue": ["reports"]}
    found = WorkerProcess("commands.yaml", tmp_path / "worker.log", settings, folder=EXAMPLE)
    yield found.wait_started()
    found.end()
    assert found.remains() == []


def enqueue(url: str, place: str, task: str, *params: str) -> subprocess.CompletedProcess[str]:
    """What the producer in PHP does and says."""
    command = ["php", str(EXAMPLE / "enqueue.php"), url, place, task, *params]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def ended(jobs: Jobs, job_id: str) -> JobRecord:
    def look() -> JobRecord | None:
        try:
            found = jobs.get(job_id)
        except JobNotFoundError:
            return None
        return found if found.state in (JobState.SUCCEEDED, JobState.DEAD) else None

    record = wait_until(look, f"job {job_id} has ended")
    assert record is not None
    return record


def test_its_documents_fit_together() -> None:
    (queue,) = read_manifests([EXAMPLE]).queues

    assert (EXAMPLE / queue.spec.app).is_file()


def test_a_task_in_shell(worker: WorkerProcess, jobs: Jobs) -> None:
    result = jobs.result(jobs.put("disk-report"))

    assert result["folder"] == "/"
    assert 0 <= result["used_percent"] <= 100
    assert any(line["message"].startswith("attempt 1 of") for line in worker.lines())


@needs_node
def test_a_task_in_node(worker: WorkerProcess, jobs: Jobs) -> None:
    counted = jobs.put("count-words", text="über alle Wörter")
    refused = jobs.put("count-words", text=5)

    assert jobs.result(counted) == {"words": 3}
    error = jobs.wait_dead(refused).error
    assert error is not None
    assert error.message == "exit code 65 (EX_DATAERR): params.text has to be text"


@needs_php
def test_a_task_and_a_producer_in_php(
    worker: WorkerProcess, jobs: Jobs, redis_url: str, namespace: str
) -> None:
    def send(**params: object) -> JobRecord:
        done = enqueue(redis_url, f"{namespace}/reports", "send-report", json.dumps(params))
        assert (done.returncode, done.stderr) == (0, "")
        return ended(jobs, done.stdout.strip())

    sent = send(to="ada@example.org")
    later = send(to="bob@example.org", busy_until_attempt=2, retry_after_seconds=0.01)
    refused = send(to="nobody", number=2**63)

    assert sent.result == {"sent": "ada@example.org", "message_id": sent.id, "attempt": 1}
    assert (later.result["attempt"], later.attempt) == (2, 2)
    assert refused.error is not None
    assert refused.error.message == 'exit code 65 (EX_DATAERR): to is no address: "nobody"'
    assert json.loads(refused.body)["params"]["number"] == 2**63, "nothing was rounded"


@needs_php
def test_an_uncaught_exception_of_php_is_a_failed_attempt(
    worker: WorkerProcess, jobs: Jobs
) -> None:
    params = {"to": "ada@example.org", "fail": True}
    job_id = jobs.put_many("send-report", [params], max_attempts=1)[0]

    error = jobs.wait_dead(job_id).error

    assert error is not None
    assert error.message.startswith("exit code 255")
    assert "no connection" in error.trace
    assert "send-report.php" in error.trace


@needs_php
def test_the_producer_says_what_is_wrong(redis_url: str) -> None:
    def complaint(*arguments: str) -> str:
        done = enqueue(*arguments)
        assert done.returncode != 0
        assert done.stdout == ""
        return done.stderr

    place = "default/reports"
    assert "params have to be a JSON object" in complaint(redis_url, place, "t", "[]")
    assert "Syntax error" in complaint(redis_url, place, "t", "{")
    assert "cannot be reached" in complaint("redis://127.0.0.1:1", place, "t")
    assert "is no URL" in complaint("nonsense", place, "t")
    wrong = redis_url.replace("redis://", "redis://nobody:x@")
    assert "Redis refuses: WRONGPASS" in complaint(wrong, place, "t")
