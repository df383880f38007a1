"""SIGTERM, once and twice: what runs may finish, what does not start goes back, nothing is lost."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.support.servers import free_port
from tests.support.waiting import wait_until
from tidework.model.job import JobState


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_ends_at_once(start_worker: StartWorker, number: signal.Signals) -> None:
    worker = start_worker().wait_started()

    worker.signal(number)

    assert worker.wait() == 0
    assert worker.events("worker_ended")
    assert "Traceback" not in worker.text()


def test_a_running_job_finishes_and_no_other_begins(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker().wait_started()
    running = jobs.put("hold", path=str(folder / "a"))
    wait_until((folder / "a.began").exists, "the job runs")
    waiting = jobs.put("add", a=1, b=1)

    worker.signal(signal.SIGTERM)
    wait_until(lambda: worker.probe("/readyz") == (503, "draining\n"), "readyz tells of the drain")
    assert worker.probe("/livez")[0] == 200
    (folder / "a.go").touch()

    assert worker.wait() == 0
    assert jobs.get(running).state is JobState.SUCCEEDED
    assert jobs.get(waiting).state is JobState.READY
    assert jobs.get(waiting).deliveries == 0


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "end of the grace"])
def test_what_does_not_finish_is_handed_back_uncounted(
    start_worker: StartWorker, jobs: Jobs, folder: Path, how: str
) -> None:
    grace = 0.3 if how == "end of the grace" else 60
    worker = start_worker(max_grace_seconds=grace).wait_started()
    running = jobs.put("hold", path=str(folder / "a"))
    wait_until((folder / "a.began").exists, "the job runs")

    worker.signal(signal.SIGTERM)
    if how != "end of the grace":
        worker.wait_event("worker_draining")
        worker.signal(signal.Signals[how])

    assert worker.wait() == 0
    record = jobs.get(running)
    assert record.state is JobState.READY
    assert (record.attempt, record.losses, record.releases) == (0, 0, 1)


def test_jobs_claimed_ahead_are_given_back_and_run_elsewhere(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker().wait_started()
    jobs.result(jobs.put("hold", path=str(folder / "warm"), seconds=0))
    first = jobs.put("hold", path=str(folder / "a"))
    others = jobs.put_many("hold", [{"path": str(folder / f"b{n}")} for n in range(6)])
    wait_until((folder / "a.began").exists, "the first runs")

    worker.signal(signal.SIGTERM)
    worker.wait_event("worker_draining")
    for job_id in others:
        jobs.wait_state(job_id, JobState.READY)
    (folder / "a.go").touch()

    assert worker.wait() == 0
    assert jobs.get(first).state is JobState.SUCCEEDED
    for job_id in others:
        record = jobs.get(job_id)
        assert (record.state, record.attempt, record.losses) == (JobState.READY, 0, 0)


def test_a_worker_that_has_not_reached_redis_ends_at_once(start_worker: StartWorker) -> None:
    worker = start_worker(redis_url=f"redis://127.0.0.1:{free_port()}/0")
    worker.wait_event("queue_not_opened")
    assert worker.probe("/livez")[0] == 200
    assert worker.probe("/readyz")[0] == 503

    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
