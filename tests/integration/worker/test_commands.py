"""Commands in a real worker: their outcomes, and that nothing of them outlives a verdict."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess, is_alive
from tests.support.waiting import wait_until
from tidework.model.job import JobState


@pytest.fixture
def worker(start_worker: StartWorker) -> WorkerProcess:
    return start_worker("shell", max_grace_seconds=60).wait_started()


def hold(jobs: Jobs, folder: Path, task: str = "act") -> tuple[str, list[int]]:
    """A job that runs, and the pids of its command and of what that has started."""
    job_id = jobs.put(task, do="hold", path=str(folder / "a"))
    return job_id, family(folder)


def family(folder: Path) -> list[int]:
    began = folder / "a.began"
    wait_until(began.exists, "the command runs")
    pids: list[int] = json.loads(began.read_text())
    began.unlink()
    assert all(map(is_alive, pids))
    return pids


def wait_gone(pids: list[int]) -> None:
    wait_until(lambda: not any(map(is_alive, pids)), "no process of the command is left")


def error_of(jobs: Jobs, job_id: str) -> dict[str, Any]:
    error = jobs.wait_dead(job_id).error
    assert error is not None
    return {
        "type": error.type,
        "message": error.message,
        "cause": error.cause,
        "trace": error.trace,
    }


def test_it_is_told_of_its_job(worker: WorkerProcess, jobs: Jobs) -> None:
    job_id = jobs.put("act", name="Ada", large=2**60)

    found = jobs.result(job_id)

    job, environment = found["job"], found["environment"]
    assert job["params"] == {"name": "Ada", "large": 2**60}
    assert (job["id"], job["task"], job["queue"]) == (job_id, "act", "jobs")
    assert (job["attempt"], job["max_attempts"], job["timeout"]) == (1, 2, 600)
    assert environment["MISDEEDS"] == "yes"
    assert environment["TIDEWORK_JOB_ID"] == job_id
    assert environment["TIDEWORK_TASK"] == "act"
    assert environment["TIDEWORK_QUEUE"] == "jobs"
    assert environment["TIDEWORK_ATTEMPT"] == "1"
    assert environment["TIDEWORK_MAX_ATTEMPTS"] == "2"
    assert int(environment["TIDEWORK_DEADLINE"]) == int(job["deadline"])
    assert environment["TIDEWORK_NAMESPACE"] == jobs.client.settings.namespace
    assert environment["TIDEWORK_REDIS_URL"] == jobs.client.settings.redis_url
    assert "TIDEWORK_SLOTS" not in environment
    assert "TIDEWORK_APP" not in environment


def test_its_output_is_logged_with_the_fields_of_the_job(worker: WorkerProcess, jobs: Jobs) -> None:
    job_id = jobs.put("act", do="fail", code=65)
    jobs.wait_dead(job_id)

    (line,) = worker.events("cannot go on")

    assert line["logger"] == "tidework.command"
    assert (line["stream"], line["level"]) == ("stderr", "warning")
    assert (line["job_id"], line["task"], line["queue"], line["attempt"]) == (
        job_id,
        "act",
        "jobs",
        1,
    )


def test_params_are_checked_by_a_model_and_filled_in(worker: WorkerProcess, jobs: Jobs) -> None:
    found = jobs.result(jobs.put("order", count=3))
    refused = error_of(jobs, jobs.put("order", count="many"))

    assert found["job"]["params"] == {"count": 3, "size": "small"}
    assert refused["cause"] == "invalid_params"
    assert "count:" in refused["message"]


def test_outcomes(worker: WorkerProcess, jobs: Jobs) -> None:
    unusable = jobs.put("act", do="fail", code=65)
    later = jobs.put("act", do="fail", code=75, last='{"retry_after_seconds": 0.01}')
    twice = jobs.put("act", do="fail", code=3, then=4)
    killed = jobs.put_many("act", [{"do": "kill", "number": 11}], max_attempts=1)[0]
    missing = jobs.put("missing")
    later_there = jobs.put("later")

    assert error_of(jobs, unusable) == {
        "type": "CommandFailed",
        "message": "exit code 65 (EX_DATAERR): cannot go on",
        "cause": "exit",
        "trace": "cannot go on",
    }
    assert jobs.get(unusable).attempt == 1
    assert jobs.wait_state(later, JobState.SUCCEEDED).attempt == 2
    assert error_of(jobs, twice)["message"] == "exit code 4: cannot go on"
    assert jobs.get(twice).attempt == 2
    assert error_of(jobs, killed)["message"] == "killed by signal 11 (SIGSEGV)"
    assert error_of(jobs, killed)["cause"] == "signal"
    assert error_of(jobs, missing)["cause"] == "not_started"
    assert "'no-such-program' was not found on PATH" in error_of(jobs, missing)["message"]
    assert "there is no file" in error_of(jobs, later_there)["message"]
    worker.wait_reaped()
    assert not worker.events("child_ended"), "none of this ends a child"


@pytest.mark.parametrize("app", ["shell", "shell_threads"])
def test_the_hard_timeout_ends_all_of_it(
    start_worker: StartWorker, jobs: Jobs, folder: Path, app: str
) -> None:
    worker = start_worker(app).wait_started()
    job_id, pids = hold(jobs, folder, "act_in_time")

    error = error_of(jobs, job_id)

    assert (error["type"], error["cause"]) == ("Timeout", "timeout")
    wait_gone(pids)
    assert jobs.result(jobs.put("act"))["job"]["task"] == "act", "the slot is free"
    worker.wait_reaped()


def test_cancel_ends_all_of_it(worker: WorkerProcess, jobs: Jobs, folder: Path) -> None:
    job_id, pids = hold(jobs, folder)

    jobs.client.cancel_sync(job_id, queue="jobs")

    jobs.wait_state(job_id, JobState.CANCELLED)
    wait_gone(pids)
    assert jobs.result(jobs.put("act")), "the slot is free"
    worker.wait_reaped()


def test_a_drain_lets_it_finish(worker: WorkerProcess, jobs: Jobs, folder: Path) -> None:
    job_id, pids = hold(jobs, folder)

    worker.signal(signal.SIGTERM)
    worker.wait_event("worker_draining")
    assert is_alive(pids[0]), "SIGTERM is the worker's, not the command's"
    (folder / "a.go").touch()

    assert worker.wait() == 0
    assert jobs.result(job_id) == "held"
    wait_gone(pids)


@pytest.mark.parametrize("how", ["second signal", "end of the grace"])
def test_a_drain_that_is_over_hands_it_back(
    start_worker: StartWorker, jobs: Jobs, folder: Path, how: str
) -> None:
    grace = 0.3 if how == "end of the grace" else 60
    worker = start_worker("shell", max_grace_seconds=grace).wait_started()
    job_id, pids = hold(jobs, folder)

    worker.signal(signal.SIGTERM)
    if how == "second signal":
        worker.wait_event("worker_draining")
        worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    wait_gone(pids)
    record = jobs.get(job_id)
    assert (record.state, record.attempt, record.releases) == (JobState.READY, 0, 1)


@pytest.mark.parametrize("who", ["child", "template", "supervisor"])
def test_it_does_not_outlive_a_kill(
    start_worker: StartWorker, jobs: Jobs, folder: Path, who: str
) -> None:
    worker = start_worker("shell", lease_seconds=1.0).wait_started()
    victims = {
        "child": worker.children()[0],
        "template": worker.template(),
        "supervisor": worker.pid,
    }
    job_id, pids = hold(jobs, folder)
    other = start_worker("shell", lease_seconds=1.0).wait_started()

    os.kill(victims[who], signal.SIGKILL)

    wait_gone(pids)
    again = family(folder)
    (folder / "a.go").touch()
    assert jobs.result(job_id) == "held"
    wait_gone(again)
    assert jobs.get(job_id).losses == 1
    other.wait_reaped()


def test_a_child_is_as_good_as_new_after_200_commands(
    start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("shell").wait_started()
    (child,) = worker.children()
    jobs.result(jobs.put("act"))

    def belongings() -> tuple[int, int]:
        files, threads = (list(Path(f"/proc/{child}/{name}").iterdir()) for name in ("fd", "task"))
        return len(files), len(threads)

    before = belongings()
    for job_id in jobs.put_many("quick", [{} for _ in range(200)]):
        jobs.result(job_id)

    assert jobs.result(jobs.put("whoami")) == child
    assert belongings() == before
    worker.wait_reaped()


def test_a_commands_file_that_is_wrong_is_told_and_nothing_starts(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    (tmp_path / "commands.yaml").write_text("commands:\n  act: {comand: [x]}\n")

    worker = start_worker(str(tmp_path / "commands.yaml"))

    assert worker.wait() == 2
    assert "commands.yaml:2: commands.act.comand: unknown field; did you mean command?" in (
        worker.text()
    )
    assert "Traceback" not in worker.text()
