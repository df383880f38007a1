"""A job cancelled while it runs: it is told, may end in order, and is killed if it does not."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.worker.conftest import workers
from tests.integration.worker.diary import Diary
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess, is_alive
from tests.support.servers import ValkeyServer
from tests.support.waiting import wait_until
from tidework.client import Client
from tidework.model.backlog import JobRecord
from tidework.model.job import JobState
from tidework.settings import Settings

BY_ITSELF = "it ended by itself"
KILLED = "and was killed"


Shared = tuple[WorkerProcess, Jobs]


@pytest.fixture(scope="module")
def with_slot(valkey: ValkeyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """One worker for the tests that only look at their own jobs; its leases are renewed often."""
    yield from started(valkey, tmp_path_factory.mktemp("slot"), slots=1)


@pytest.fixture(scope="module")
def with_loop(valkey: ValkeyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """The same with an event loop, for async tasks."""
    yield from started(valkey, tmp_path_factory.mktemp("loop"), async_slots=2)


def started(valkey: ValkeyServer, folder: Path, **places: int) -> Iterator[Shared]:
    namespace = f"cancel-{secrets.token_hex(4)}"
    jobs = Jobs(Client(Settings(redis_url=valkey.url, namespace=namespace)))
    with workers(valkey.url, namespace, folder) as start:
        options = {"cancel_grace_seconds": 1.5, "lease_seconds": 1.5, **places}
        yield start("long", **options).wait_started(), jobs
    jobs.client.close_sync()


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> Shared:
    """The worker with places for the task that the test is about."""
    parameters = getattr(request.node, "callspec", None)
    task = parameters.params.get("task", "") if parameters else ""
    found: Shared = request.getfixturevalue("with_loop" if task.endswith("_async") else "with_slot")
    return found


@pytest.fixture
def worker(shared: Shared) -> WorkerProcess:
    return shared[0]


@pytest.fixture
def jobs(shared: Shared) -> Jobs:
    return shared[1]


@pytest.fixture
def diary(folder: Path) -> Diary:
    return Diary(folder)


def cancel(jobs: Jobs, job_id: str) -> JobRecord:
    assert jobs.client.cancel_sync(job_id, queue="jobs") == "requested"
    return jobs.wait_state(job_id, JobState.CANCELLED)


def test_a_sync_handler_ends_in_order(worker: WorkerProcess, jobs: Jobs, diary: Diary) -> None:
    job_id = jobs.put("tidy", folder=diary.folder)
    process = diary.wait_began()

    record = cancel(jobs, job_id)

    assert BY_ITSELF in record.history[-1].cause
    assert diary.lines()[1:] == ["told True", "cleaned up"]
    wait_until(lambda: not is_alive(process), "its process is replaced")
    diary.let_pass(1)
    assert jobs.result(jobs.put("walk", folder=diary.folder, count=1)) == 1
    worker.wait_reaped()


@pytest.mark.parametrize("task", ["tidy_async", "tidy_command"])
def test_an_async_handler_and_a_command_end_in_order(
    worker: WorkerProcess, jobs: Jobs, diary: Diary, task: str
) -> None:
    job_id = jobs.put(task, folder=diary.folder)
    diary.wait_began()

    record = cancel(jobs, job_id)

    assert BY_ITSELF in record.history[-1].cause
    assert diary.lines()[1:] == ["cleaned up"]
    worker.wait_reaped()


@pytest.mark.parametrize("task", ["swallow", "swallow_async", "deaf_command", "take_the_signal"])
def test_what_goes_on_is_killed(worker: WorkerProcess, jobs: Jobs, diary: Diary, task: str) -> None:
    job_id = jobs.put(task, folder=diary.folder)
    process = diary.wait_began()

    record = cancel(jobs, job_id)

    assert KILLED in record.history[-1].cause
    assert (record.attempt, record.losses) == (1, 0)
    wait_until(lambda: not is_alive(process), "the process is gone")
    met = {"swallow": "CancelRequested", "swallow_async": "CancelledError"}
    assert diary.lines("swallowed") == ([met[task]] if task in met else [])
    worker.wait_reaped()


def test_what_a_cancelled_job_started_ends_with_it(
    worker: WorkerProcess, jobs: Jobs, diary: Diary
) -> None:
    job_id = jobs.put("leave_program", folder=diary.folder)
    program = diary.wait_began()
    worker.note(program)

    record = cancel(jobs, job_id)

    assert BY_ITSELF in record.history[-1].cause
    wait_until(lambda: not is_alive(program), "the program is gone")


@pytest.mark.parametrize("task", ["walk", "walk_async"])
def test_a_job_at_a_checkpoint_ends_after_its_item(
    worker: WorkerProcess, jobs: Jobs, diary: Diary, task: str
) -> None:
    job_id = jobs.put(task, folder=diary.folder, count=4)
    diary.let_pass(1)
    diary.wait("began 2")

    assert jobs.client.cancel_sync(job_id, queue="jobs") == "requested"
    told = "the job is told"
    wait_until(lambda: _is_told(worker, jobs, job_id), told)
    diary.let_pass(2)

    record = jobs.wait_state(job_id, JobState.CANCELLED)
    assert BY_ITSELF in record.history[-1].cause
    assert diary.done() == [1, 2]
    assert record.checkpoints == {}


def _is_told(worker: WorkerProcess, jobs: Jobs, job_id: str) -> bool:
    record = jobs.get(job_id)
    return record.cancel_requested


def test_an_item_that_takes_longer_is_interrupted(
    worker: WorkerProcess, jobs: Jobs, diary: Diary
) -> None:
    job_id = jobs.put("walk", folder=diary.folder, count=4)
    diary.wait("began 1")

    record = cancel(jobs, job_id)

    assert BY_ITSELF in record.history[-1].cause
    assert diary.done() == []


def test_a_job_that_had_not_begun_is_cancelled_at_once(
    worker: WorkerProcess, jobs: Jobs, diary: Diary
) -> None:
    first = jobs.put("walk", folder=diary.folder, count=1)
    diary.wait("began 1")
    waiting = jobs.put("walk", folder=diary.folder, count=1)

    jobs.client.cancel_sync(waiting, queue="jobs")
    jobs.wait_state(waiting, JobState.CANCELLED)

    diary.let_pass(1)
    assert jobs.result(first) == 1
    assert diary.done() == [1]
