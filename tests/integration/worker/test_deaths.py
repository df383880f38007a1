"""kill -9 of each process of a worker: jobs run again, counted right, and nobody is left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess, is_alive
from tests.support.waiting import wait_until
from tidework.model.job import JobState


def begin(jobs: Jobs, folder: Path, name: str = "a") -> tuple[str, int]:
    """A job that runs, and the pid of its child."""
    path = folder / name
    job_id = jobs.put("hold", path=str(path))
    wait_until(path.with_suffix(".began").exists, "the job runs")
    pid, _ = path.with_suffix(".began").read_text().split()
    path.with_suffix(".began").unlink()
    return job_id, int(pid)


def finish(jobs: Jobs, folder: Path, job_id: str, name: str = "a") -> None:
    """Wait until it runs again, and have it end."""
    path = folder / name
    wait_until(path.with_suffix(".began").exists, "the job runs again")
    path.with_suffix(".go").touch()
    assert jobs.result(job_id) == "held"


def test_a_killed_child(start_worker: StartWorker, jobs: Jobs, folder: Path) -> None:
    worker = start_worker().wait_started()
    job_id, child = begin(jobs, folder)

    os.kill(child, signal.SIGKILL)

    finish(jobs, folder, job_id)
    record = jobs.get(job_id)
    assert (record.losses, record.deliveries) == (1, 2)
    assert worker.children() != [child]
    worker.wait_reaped()


def test_a_killed_template(start_worker: StartWorker, jobs: Jobs, folder: Path) -> None:
    worker = start_worker(slots=2).wait_started()
    worker.children(2)
    job_id, child = begin(jobs, folder)
    template = worker.template()

    os.kill(template, signal.SIGKILL)

    wait_until(lambda: not is_alive(child), "its children died with it")
    finish(jobs, folder, job_id)
    assert worker.template() != template
    assert len(worker.children(2)) == 2
    worker.wait_reaped()
    assert jobs.get(job_id).losses == 1
    assert worker.probe("/livez")[0] == 200


def test_a_killed_supervisor_takes_everybody_along(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker(slots=2, lease_seconds=1.0).wait_started()
    everybody = [worker.template(), *worker.children(2)]
    job_id, _ = begin(jobs, folder)
    second = start_worker(lease_seconds=1.0).wait_started()

    worker.signal(signal.SIGKILL)

    worker.wait()
    wait_until(lambda: not any(map(is_alive, everybody)), "no process is left")
    finish(jobs, folder, job_id)
    record = jobs.get(job_id)
    assert record.losses == 1
    assert second.metric("tidework_jobs_succeeded_total") == 1


def test_what_jobs_have_started_ends_with_a_killed_supervisor(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    """In the job's session, or in one of its own and with no parent but its job's process."""
    worker = start_worker(slots=2).wait_started()
    near, far = folder / "near", folder / "far"
    jobs.result(jobs.put("leave_orphan", path=str(far)))
    jobs.put("start_program", path=str(near))
    wait_until(near.exists, "its program runs")
    programs = [int(wait_until(path.read_text, "its pid")) for path in (near, far)]
    everybody = [worker.template(), *worker.children(2), *programs]
    for pid in everybody:
        worker.note(pid)

    worker.signal(signal.SIGKILL)

    worker.wait()
    wait_until(lambda: not any(map(is_alive, everybody)), "no process is left")


def test_a_killed_child_loses_the_started_job_and_not_those_behind_it(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker().wait_started()
    jobs.result(jobs.put("hold", path=str(folder / "warm"), seconds=0))
    ids = jobs.put_many("hold", [{"path": str(folder / f"j{n}")} for n in range(4)])
    wait_until((folder / "j0.began").exists, "the first runs")
    pid = int((folder / "j0.began").read_text().split()[0])

    os.kill(pid, signal.SIGKILL)

    for number in range(4):
        (folder / f"j{number}.go").touch()
    for job_id in ids:
        assert jobs.result(job_id) == "held"
    assert [jobs.get(job_id).losses for job_id in ids] == [1, 0, 0, 0]
    worker.wait_reaped()


def test_a_worker_ends_with_the_parent_that_it_was_told(
    redis_url: str, namespace: str, tmp_path: Path, start_worker: StartWorker
) -> None:
    apps = Path(__file__).parent / "apps"
    log = tmp_path / "child.log"
    code = (
        "import os, subprocess, sys, time;"
        "os.environ['TIDEWORK_PARENT_PID'] = str(os.getpid());"
        "log = open(sys.argv[1], 'w');"
        "p = subprocess.Popen([sys.executable, '-m', 'tidework.worker'], stderr=log);"
        "print(p.pid, flush=True);"
        "time.sleep(100)"
    )
    environment = {
        **os.environ,
        "TIDEWORK_APP": "hostile",
        "TIDEWORK_REDIS_URL": redis_url,
        "TIDEWORK_NAMESPACE": namespace,
    }
    with subprocess.Popen(
        [sys.executable, "-c", code, str(log)], cwd=apps, env=environment, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        wait_until(lambda: "worker started" in log.read_text(), "it works")
        parent.kill()

    wait_until(lambda: not is_alive(worker), "it ended with its parent")


def test_a_stopped_worker_is_refused_when_it_wakes_up(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    sleeper = start_worker(lease_seconds=0.6).wait_started()
    job_id, child = begin(jobs, folder)
    sleeper.signal(signal.SIGSTOP)
    try:
        awake = start_worker(lease_seconds=0.6).wait_started()
        wait_until((folder / "a.began").exists, "the other one runs it")
    finally:
        sleeper.signal(signal.SIGCONT)

    wait_until(lambda: not is_alive(child), "its own run is stopped")
    (folder / "a.go").touch()

    assert jobs.result(job_id) == "held"
    assert awake.metric("tidework_jobs_succeeded_total") == 1
    assert sleeper.metric("tidework_jobs_lease_lost_total") >= 1
    assert sleeper.metric("tidework_jobs_succeeded_total") == 0
    assert jobs.get(job_id).state is JobState.SUCCEEDED


def test_work_that_a_stopped_idle_worker_got_goes_to_others(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    """It waits longest, so it is served first: by the server, without its doing."""
    sleeper = start_worker(lease_seconds=0.6).wait_started()
    wait_until(lambda: jobs.listeners() == 1, "it waits for work")
    sleeper.signal(signal.SIGSTOP)
    try:
        awake = start_worker(lease_seconds=0.6).wait_started()
        job_id = jobs.put("hold", path=str(folder / "a"))
        finish(jobs, folder, job_id)
    finally:
        sleeper.signal(signal.SIGCONT)

    finish(jobs, folder, jobs.put("hold", path=str(folder / "b")), "b")

    assert awake.metric("tidework_jobs_succeeded_total") >= 1
    found = jobs.get(job_id)
    assert (found.state, found.attempt) == (JobState.SUCCEEDED, 1)
    assert found.losses <= 1


def test_a_worker_that_ends_while_work_comes_keeps_none_of_it(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    ids: list[str] = []
    for _ in range(5):
        worker = start_worker(slots=2).wait_started()
        wait_until(lambda: jobs.listeners() == 1, "it waits for work")
        ids.append(jobs.put("hold", path=str(folder / f"a{len(ids)}")))
        worker.signal(signal.SIGTERM)
        for name in range(len(ids)):
            (folder / f"a{name}.go").touch()
        assert worker.wait() == 0
        wait_until(lambda: jobs.listeners() == 0, "the server knows that it is gone")

    start_worker().wait_started()

    for job_id in ids:
        assert jobs.result(job_id) == "held"
        assert jobs.get(job_id).losses == 0


def test_who_is_lost_with_the_culprit_outlives_it(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    # Whenever the culprit runs its worker dies, as by the kernel's OOM killer.
    began = {name: folder / f"{name}.began" for name in ("innocent", "culprit")}
    ids = {name: jobs.put("hold", path=str(folder / name)) for name in began}
    for _ in range(2):
        worker = start_worker(slots=2, lease_seconds=1)
        for path in began.values():
            wait_until(path.exists, "both run")
        kill(worker, *began.values())

    worker = start_worker(slots=2, lease_seconds=1)
    wait_until(lambda: any(path.exists() for path in began.values()), "one of them runs")
    other = "culprit" if began["innocent"].exists() else "innocent"
    wait_until(
        lambda: began[other].exists() or jobs.get(ids[other]).releases > 1, "the other one comes"
    )
    assert not began[other].exists(), "it is given back"
    (folder / "innocent.go").touch()
    wait_until(began["culprit"].exists, "the culprit runs")
    kill(worker, *began.values())

    start_worker(slots=2, lease_seconds=1)
    dead = jobs.wait_dead(ids["culprit"])
    assert (dead.losses, dead.error and dead.error.cause) == (3, "lost")
    assert jobs.result(ids["innocent"]) == "held"
    assert jobs.get(ids["innocent"]).losses == 2


def kill(worker: WorkerProcess, *traces: Path) -> None:
    """And forget what began in it."""
    worker.signal(signal.SIGKILL)
    worker.wait()
    for path in traces:
        path.unlink(missing_ok=True)
