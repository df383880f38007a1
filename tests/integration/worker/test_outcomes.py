"""What becomes of jobs in a real worker, good, bad and hostile, and of their neighbours."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker, workers
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess, is_alive
from tests.support.servers import ValkeyServer
from tests.support.waiting import wait_until
from tidework.client import Client
from tidework.model.job import JobState
from tidework.settings import Settings


@pytest.fixture(scope="module")
def shared(
    valkey: ValkeyServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[WorkerProcess, Jobs]]:
    """One worker with two slots for the tests that only look at their own jobs."""
    namespace = f"shared-{secrets.token_hex(4)}"
    jobs = Jobs(Client(Settings(redis_url=valkey.url, namespace=namespace)))
    with workers(valkey.url, namespace, tmp_path_factory.mktemp("shared")) as start:
        yield start(slots=2).wait_started(), jobs


def test_honest_jobs_and_honest_failures(start_worker: StartWorker, jobs: Jobs) -> None:
    worker = start_worker(slots=2).wait_started()
    added = jobs.put("add", a=2, b=3)
    failing = jobs.put("fail", reason="no such address")
    buried = jobs.put("bury", reason="it does not parse")
    unfit = jobs.put("add", a="two", b=3)
    unknown = jobs.put("no_such_task")
    leaving = jobs.put_many("exit_politely", [{"code": 3}], max_attempts=1)[0]
    jobs.put_document(b"{broken")
    jobs.put_document(b'{"task": "add", "params": {"a": 1, "b": 1}, "id": "foreign"}')

    assert jobs.result(added) == 5
    assert jobs.result("foreign") == 2

    failed = jobs.wait_dead(failing)
    assert failed.attempt == 2
    assert failed.error is not None
    assert (failed.error.type, failed.error.message) == ("ValueError", "no such address")
    assert "hostile.py" in failed.error.trace

    found = jobs.wait_dead(buried)
    assert found.attempt == 1
    assert found.error is not None
    assert found.error.message == "it does not parse"

    refused = jobs.wait_dead(unfit).error
    assert refused is not None
    assert refused.cause == "invalid_params"
    assert "a:" in refused.message

    left = jobs.wait_dead(leaving).error
    assert left is not None
    assert left.type == "SystemExit"

    waiting = jobs.wait_state(unknown, JobState.SCHEDULED)
    assert (waiting.releases, waiting.attempt) == (1, 0)

    rejected = wait_until(lambda: jobs.client.jobs_sync("jobs", JobState.DEAD).ids, "dead letters")
    bodies = [jobs.get(job_id) for job_id in rejected]
    (letter,) = [record for record in bodies if record.body == b"{broken"]
    assert letter.error is not None
    assert letter.error.cause == "invalid"
    assert worker.metric("tidework_jobs_dead_total") == 4
    assert worker.metric("tidework_documents_rejected_total") == 1
    worker.wait_reaped()
    assert not worker.events("child_ended"), "none of this ends a child"


@pytest.mark.parametrize(
    ("task", "params", "cause"),
    [
        ("read_null", {}, "signal 11 (SIGSEGV)"),
        ("kill_myself", {"number": signal.SIGSEGV}, "signal 11 (SIGSEGV)"),
        ("kill_myself", {"number": signal.SIGKILL}, "signal 9 (SIGKILL)"),
        ("leave", {"code": 3}, "exit code 3"),
        ("close_everything", {}, "signal 9 (SIGKILL)"),
    ],
)
def test_a_job_that_kills_its_child_is_poison_and_harms_nobody(
    shared: tuple[WorkerProcess, Jobs],
    folder: Path,
    task: str,
    params: dict[str, int],
    cause: str,
) -> None:
    worker, jobs = shared
    innocent = jobs.put("hold", path=str(folder / "innocent"))
    wait_until((folder / "innocent.began").exists, "the innocent runs")

    poison = jobs.put(task, **params)

    dead = jobs.wait_dead(poison)
    assert dead.losses == 3
    lost = worker.events("job_lost")
    assert [line["cause"] for line in lost if line["job_id"] == poison] == [cause] * 3
    (buried,) = (line for line in worker.events("job_buried") if line["job_id"] == poison)
    assert (buried["level"], buried["losses"]) == ("error", 3)
    assert dead.error is not None
    assert cause in dead.error.message or cause in dead.error.cause
    (folder / "innocent.go").touch()
    assert jobs.result(innocent) == "held"
    assert jobs.get(innocent).deliveries == 1
    assert jobs.result(jobs.put("add", a=1, b=1)) == 2
    assert len(worker.children(2)) == 2
    worker.wait_reaped()


def test_a_job_that_comes_back_twice_ends_once(shared: tuple[WorkerProcess, Jobs]) -> None:
    worker, jobs = shared

    forked = jobs.put("come_back_twice")

    assert jobs.result(forked) > 0
    assert jobs.get(forked).deliveries == 1
    assert jobs.result(jobs.put("add", a=1, b=1)) == 2
    assert len(worker.children(2)) == 2


def test_the_hard_timeout_kills_whatever_the_job_does(
    shared: tuple[WorkerProcess, Jobs], folder: Path
) -> None:
    _, jobs = shared
    hanging = jobs.put("hang", path=str(folder / "pid"))

    dead = jobs.wait_dead(hanging)

    assert dead.error is not None
    assert (dead.error.type, dead.error.cause) == ("Timeout", "timeout")
    assert dead.losses == 0
    assert not is_alive(int((folder / "pid").read_text()))
    assert jobs.result(jobs.put("add", a=1, b=1)) == 2


def test_the_soft_timeout_lets_a_job_end_in_order_and_its_process_live(
    shared: tuple[WorkerProcess, Jobs], folder: Path
) -> None:
    _, jobs = shared

    dead = jobs.wait_dead(jobs.put("end_in_order", path=str(folder / "pid")))

    assert dead.error is not None
    assert (dead.error.type, dead.error.cause) == ("SoftTimeout", "soft_timeout")
    assert is_alive(int((folder / "pid").read_text()))


def test_a_job_that_goes_on_after_its_soft_timeout_is_killed_at_the_hard_one(
    shared: tuple[WorkerProcess, Jobs], folder: Path
) -> None:
    _, jobs = shared

    dead = jobs.wait_dead(jobs.put("swallow_soft_timeout", path=str(folder / "pid")))

    assert dead.error is not None
    assert (dead.error.type, dead.error.cause) == ("Timeout", "timeout")
    assert not is_alive(int((folder / "pid").read_text()))


def test_a_cancelled_job_goes_with_its_whole_process_group(
    shared: tuple[WorkerProcess, Jobs], folder: Path
) -> None:
    worker, jobs = shared
    running = jobs.put("start_program", path=str(folder / "pid"))
    wait_until((folder / "pid").exists, "the program runs")
    program = int((folder / "pid").read_text())
    worker.note(program)

    assert jobs.client.cancel_sync(running, queue="jobs") == "requested"

    jobs.wait_state(running, JobState.CANCELLED)
    wait_until(lambda: not is_alive(program), "the program is gone")


def test_what_outlives_its_job_ends_with_the_child(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker().wait_started()
    leaving = jobs.put("leave_orphan", path=str(folder / "orphan"))
    assert jobs.result(leaving) is None
    orphan = int((folder / "orphan").read_text())
    worker.note(orphan)
    assert is_alive(orphan)

    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    wait_until(lambda: not is_alive(orphan), "the orphan is gone")
