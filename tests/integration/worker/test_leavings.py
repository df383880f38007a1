"""What a job leaves in its process: put right, or the process replaced, before the next job."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.conftest import StartWorker, workers
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess, is_alive
from tests.support.servers import ValkeyServer
from tests.support.waiting import wait_until
from tidework.client import Client
from tidework.model.job import JobState
from tidework.settings import Settings
from tidework.worker import process, stacks

KINDS = {
    "working directory": "the working directory",
    "umask": "the umask",
    "environment": "the environment (HOME, LEFT_BY_A_JOB, PATH)",
    "handlers": "the handlers of SIGUSR1, SIGTERM",
    "blocked signals": "the blocked signals",
    "timer": "the timer of SIGALRM",
    "limit": "RLIMIT_NOFILE",
}


PLACES: dict[str, dict[str, Any]] = {
    "": {"slots": 1, "queue": ["jobs"]},
    "_async": {"async_slots": 1, "queue": ["loops"]},
}
"""By the suffix of tasks. The application declares sync and async ones for ``jobs``."""


@pytest.fixture(scope="module")
def shared(
    valkey: ValkeyServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[WorkerProcess, Jobs]]]:
    """By the suffix of tasks, a worker for the tests that only look at their own jobs."""
    namespace = f"leavings-{secrets.token_hex(4)}"
    client = Client(Settings(redis_url=valkey.url, namespace=namespace))
    with workers(valkey.url, namespace, tmp_path_factory.mktemp("leavings")) as start:
        yield {
            suffix: (
                start("leavings", **places).wait_started(),
                Jobs(client, places["queue"][0]),
            )
            for suffix, places in PLACES.items()
        }
    client.close_sync()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", PLACES)
def test_what_can_be_put_right_is_and_is_told(
    shared: dict[str, tuple[WorkerProcess, Jobs]], kind: str, suffix: str
) -> None:
    worker, jobs = shared[suffix]
    before = jobs.result(jobs.put(f"leave_changed{suffix}", kind=kind))

    after = jobs.result(jobs.put(f"find{suffix}"))

    assert after == before, "the next job finds its process as it was, and it is the same one"
    told = worker.events("process_changed")
    assert [line for line in told if KINDS[kind] in line["changed"]]


def test_what_each_of_a_row_of_short_jobs_leaves_reaches_none_of_the_others(
    shared: dict[str, tuple[WorkerProcess, Jobs]],
) -> None:
    _, jobs = shared[""]
    ids = jobs.put_many("leave_changed", [{"kind": "several"}] * 50)

    found = [jobs.result(each) for each in ids]

    assert found == [found[0]] * 50


def test_the_stacks_of_a_child_can_be_had_after_a_job_took_their_signals(
    shared: dict[str, tuple[WorkerProcess, Jobs]],
) -> None:
    _, jobs = shared[""]
    child = jobs.result(jobs.put("leave_changed", kind="handlers"))["pid"]
    jobs.result(jobs.put("find"))

    assert process.catches(child, stacks.ASK)
    assert process.catches(child, stacks.INSIST)


@pytest.mark.parametrize("suffix", PLACES)
def test_a_process_whose_files_a_job_left_open_is_replaced_before_the_next_job(
    start_worker: StartWorker, client: Client, suffix: str
) -> None:
    places = PLACES[suffix]
    worker = start_worker("leavings", **places).wait_started()
    jobs = Jobs(client, places["queue"][0])
    spoilt = jobs.put(f"leave_open{suffix}")
    others = [jobs.put(f"find{suffix}") for _ in range(30)]

    child = jobs.result(spoilt)

    assert child not in {jobs.result(each)["pid"] for each in others}
    assert {jobs.get(each).deliveries for each in others} <= {1, 2}
    assert "files open" in worker.wait_event("child_recycled")["reason"]
    wait_until(lambda: not is_alive(child), "it ends")


def test_what_a_pool_keeps_for_the_next_job_replaces_nothing(
    start_worker: StartWorker, jobs: Jobs
) -> None:
    start_worker("leavings").wait_started()

    pids = {jobs.result(jobs.put("leave_some", files=100, threads=40)) for _ in range(5)}

    assert len(pids) == 1


@pytest.mark.parametrize(
    ("task", "params", "reason"),
    [
        ("leave_some", {"files": 0, "threads": 120}, "120 threads that its jobs left running"),
        (
            "leave_redirected",
            {"path": "FOLDER/output"},
            "a job closed or redirected its input, output or errors",
        ),
    ],
)
def test_what_cannot_be_put_right_has_the_process_replaced(
    start_worker: StartWorker,
    jobs: Jobs,
    folder: Path,
    task: str,
    params: dict[str, str],
    reason: str,
) -> None:
    worker = start_worker("leavings").wait_started()
    if "path" in params:
        params = {"path": str(folder / "output")}

    child = jobs.result(jobs.put(task, **params))

    assert jobs.result(jobs.put("find"))["pid"] != child
    assert worker.wait_event("child_recycled")["reason"] == reason


def test_a_child_in_which_all_jobs_fail_at_once_draws_a_few_of_them(
    start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("leavings").wait_started()
    jobs.result(jobs.put("spoil"))

    ids = jobs.put_many("work_unless_spoilt", [{}] * 30)

    assert {jobs.wait_state(each, JobState.SUCCEEDED).losses for each in ids} == {0}
    assert "jobs failed in it at once" in worker.wait_event("child_recycled")["reason"]


def test_jobs_that_another_one_read_from_the_pipes_of_its_process_run_all_the_same(
    start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("leavings").wait_started()
    jobs.result(jobs.put("read_pipes", seconds=0))
    ids = jobs.put_many("read_pipes", [{"seconds": 0.05}] + [{"seconds": 0}] * 8)

    for each in ids:
        jobs.result(each)

    assert {jobs.get(each).losses for each in ids} == {0}
    reasons = {line["reason"] for line in worker.events("child_recycled")}
    assert reasons == {"a job read what was sent to its process"}


def test_a_job_that_another_one_read_on_the_event_loop_runs_all_the_same(
    start_worker: StartWorker, client: Client, folder: Path
) -> None:
    places = {**PLACES["_async"], "async_slots": 2}
    worker = start_worker("leavings", **places).wait_started()
    jobs = Jobs(client, places["queue"][0])
    reads = jobs.put("read_pipes_async", path=str(folder / "began"))
    wait_until((folder / "began").exists, "it reads")

    read = jobs.put("find_async")

    assert jobs.result(read)
    assert jobs.get(read).losses == jobs.get(reads).losses == 0
    reason = worker.wait_event("child_recycled")["reason"]
    assert reason == "a job read what was sent to its process"
