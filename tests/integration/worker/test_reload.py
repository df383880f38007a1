"""SIGHUP: another version of the application takes over between jobs, or nothing changes."""

from __future__ import annotations

import os
import pty
import signal
import textwrap
from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess, children_of, is_alive
from tests.support.waiting import wait_until
from tidework.model.job import JobState
from tidework.worker import process

LOADED = "application_reloaded"
TOLD = "reload_asked"
BEGINS_AGAIN = "import_repeated"
DRAINS = "reload_ignored"

APP = """
import asyncio, os, threading, time
from pathlib import Path
from tidework.app import Tidework

{at_import}
app = Tidework("versioned", queue="jobs")

@app.task
{kind} version() -> list[int]:
    return [{version}, os.getpid()]

@app.task
{kind} hold(path: str) -> int:
    Path(path + ".began").write_text(str(os.getpid()))
    while not Path(path + ".go").exists():
        {rest}
    return {version}

@app.task
{kind} only_in_{version}() -> int:
    return {version}
"""


class Versions:
    """Writes versions of the application where workers import it from."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "versioned.py"

    def write(self, version: int, at_import: str = "", *, is_async: bool = False) -> None:
        """This is the one on disk now."""
        kind, rest = ("async def", "await asyncio.sleep") if is_async else ("def", "time.sleep")
        text = APP.format(
            version=version, at_import=textwrap.dedent(at_import), kind=kind, rest=f"{rest}(0.005)"
        )
        # Compiled code is taken for current by time and size: both could be those of the last one.
        self._path.write_text(text + "#" * version)


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Versions:
    folder = tmp_path / "app"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    found = Versions(folder)
    found.write(1)
    return found


def reload(worker: WorkerProcess, loads: int = 1) -> None:
    """Have the version on disk loaded; the ``loads``-th one of the worker's life."""
    worker.signal(signal.SIGHUP)
    worker.wait_event(LOADED, loads)


def hold(jobs: Jobs, path: Path) -> tuple[str, int]:
    """A job that runs until ``path.go`` is there; its child's pid."""
    job_id = jobs.put("hold", path=str(path))
    began = path.with_suffix(".began")
    wait_until(lambda: began.exists() and began.read_text(), "the job runs")
    return job_id, int(began.read_text())


def wait_one_template(worker: WorkerProcess) -> None:
    wait_until(
        lambda: len([p for p in children_of(worker.pid) if is_alive(p)]) == 1, "one template"
    )


def test_a_running_job_ends_in_its_version_and_the_next_one_has_the_new(
    versions: Versions, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker("versioned", slots=2, lease_seconds=1.0).wait_started()
    old, pid = hold(jobs, folder / "a")

    versions.write(2)
    reload(worker)

    assert jobs.result(jobs.put("version"))[0] == 2
    assert jobs.result(jobs.put("only_in_2")) == 2, "it is admitted"
    gone = jobs.put("only_in_1")
    jobs.wait_state(gone, JobState.SCHEDULED)
    assert worker.probe("/readyz") == (200, "ok\n")
    assert worker.probe("/livez") == (200, "ok\n")
    assert is_alive(pid)
    (folder / "a.go").touch()
    assert jobs.result(old) == 1
    record = jobs.get(old)
    assert (record.deliveries, record.losses) == (1, 0)
    wait_until(lambda: not is_alive(pid), "the old child is gone")
    wait_one_template(worker)
    assert len(worker.children(2)) == 2
    worker.wait_reaped()
    assert worker.metric("tidework_jobs_lease_lost_total") == 0


def test_a_job_that_was_unknown_runs_once_the_new_version_knows_it(
    versions: Versions, start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("versioned").wait_started()
    job_id = jobs.put("only_in_2")
    wait_until(lambda: jobs.get(job_id).releases, "it is given back")
    # The next looks are seconds away, and then a minute.
    wait_until(lambda: jobs.get(job_id).releases >= 3, "several times")
    warnings = worker.events("job_unknown")
    assert [line["level"] for line in warnings] == ["warning"]
    assert "unknown task 'only_in_2'; did you mean 'only_in_1'?" in warnings[0]["cause"]
    assert worker.events("job_released"), "the others are told as well"

    versions.write(2)
    reload(worker)

    recalled = worker.wait_event("jobs_known")
    assert (recalled["jobs"], recalled["queue"]) == (1, "jobs")
    assert jobs.result(job_id) == 2
    assert jobs.get(job_id).attempt == 1


def test_a_version_that_does_not_import_changes_nothing(
    versions: Versions, start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("versioned", slots=2).wait_started()
    before = worker.children(2)

    versions.write(2, "import no_such_module")
    worker.signal(signal.SIGHUP)
    line = worker.wait_event("reload_failed")

    assert line["level"] == "error"
    assert "no_such_module" in line["message"]
    assert jobs.result(jobs.put("version"))[0] == 1
    assert jobs.result(jobs.put("only_in_1")) == 1
    assert worker.children(2) == before
    wait_one_template(worker)
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: before[0] not in worker.children(2), "another child, of the old template")
    assert jobs.result(jobs.put("version"))[0] == 1
    versions.write(3)
    reload(worker)
    assert jobs.result(jobs.put("version"))[0] == 3


def test_an_import_that_ends_its_process_changes_nothing(
    versions: Versions, start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("versioned").wait_started()

    versions.write(2, "os._exit(3)")
    worker.signal(signal.SIGHUP)

    wait_until(lambda: "(exit code 3); see what" in worker.text(), "it says so")
    assert jobs.result(jobs.put("version"))[0] == 1
    assert worker.probe("/readyz")[0] == 200


def test_whoever_asks_again_meanwhile_gets_what_is_on_disk_then(
    versions: Versions, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker("versioned").wait_started()
    seen = folder / "imported"

    versions.write(2, f"Path({str(seen)!r}).touch(); time.sleep(60)")
    worker.signal(signal.SIGHUP)
    wait_until(seen.exists, "the import is under way")
    versions.write(3)
    reload(worker)

    assert worker.events(BEGINS_AGAIN)
    assert jobs.result(jobs.put("version"))[0] == 3
    wait_one_template(worker)
    assert len(worker.events(LOADED)) == 1
    assert not worker.events("orphan_killed"), "we end it ourselves"


def test_jobs_of_three_versions_side_by_side(
    versions: Versions, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker("versioned", slots=3).wait_started()
    running = []
    for version in (1, 2):
        running.append(hold(jobs, folder / f"v{version}"))
        versions.write(version + 1)
        reload(worker, version)

    assert jobs.result(jobs.put("version"))[0] == 3
    assert len([p for p in children_of(worker.pid) if is_alive(p)]) == 3
    for version, (job_id, _) in enumerate(running, 1):
        (folder / f"v{version}.go").touch()
        assert jobs.result(job_id) == version
    wait_one_template(worker)
    worker.wait_reaped()


def test_a_death_in_the_old_version_runs_again_in_the_new(
    versions: Versions, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker("versioned", slots=2).wait_started()
    job_id, _ = hold(jobs, folder / "a")
    old_template = worker.template()
    versions.write(2)
    reload(worker)
    (new_pid,) = {jobs.result(jobs.put("version"))[1] for _ in range(1)}

    os.kill(old_template, signal.SIGKILL)

    wait_until(lambda: jobs.get(job_id).losses == 1, "the job is lost with its template")
    (folder / "a.go").touch()
    assert jobs.result(job_id) == 2
    assert is_alive(new_pid), "the others are not disturbed"
    wait_one_template(worker)
    assert not [line for line in worker.lines() if "the next starts in" in line["message"]]


def test_a_worker_whose_template_does_not_come_back_is_mended(
    versions: Versions, start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("versioned").wait_started()
    versions.write(2, "import no_such_module")
    os.kill(worker.template(), signal.SIGKILL)
    wait_until(lambda: worker.text().count("the next starts in") > 1, "it does not import")

    versions.write(3)
    reload(worker)

    assert jobs.result(jobs.put("version"))[0] == 3
    wait_one_template(worker)
    ends = worker.text().count("the next starts in")
    assert jobs.result(jobs.put("version"))[0] == 3
    assert worker.text().count("the next starts in") == ends


def test_async_jobs_end_on_their_loop_and_the_next_run_on_a_new_one(
    versions: Versions, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    versions.write(1, is_async=True)
    worker = start_worker("versioned", async_slots=5).wait_started()
    old, pid = hold(jobs, folder / "a")

    versions.write(2, is_async=True)
    reload(worker)
    new, new_pid = hold(jobs, folder / "b")

    assert new_pid != pid
    for name, job_id, version in (("b", new, 2), ("a", old, 1)):
        (folder / f"{name}.go").touch()
        assert jobs.result(job_id) == version
    wait_one_template(worker)


def test_a_version_whose_tasks_would_block_the_event_loop_is_not_loaded(
    versions: Versions, start_worker: StartWorker, jobs: Jobs
) -> None:
    versions.write(1, is_async=True)
    worker = start_worker("versioned", async_slots=1).wait_started()
    before, _ = jobs.result(jobs.put("version"))

    versions.write(2)
    worker.signal(signal.SIGHUP)

    wait_until(lambda: "the version before goes on" in worker.text(), "it is refused")
    assert "(hold, only_in_2, version); make it an 'async def'" in worker.text()
    assert jobs.result(jobs.put("version"))[0] == before


def test_an_application_with_threads_is_loaded_anew_as_well(
    versions: Versions, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    threads = "threading.Thread(target=threading.Event().wait, daemon=True).start()"
    versions.write(1, threads)
    worker = start_worker("versioned", slots=2).wait_started()
    old, _ = hold(jobs, folder / "a")

    versions.write(2, threads)
    reload(worker)

    assert jobs.result(jobs.put("version"))[0] == 2
    (folder / "a.go").touch()
    assert jobs.result(old) == 1
    versions.write(3)
    reload(worker, 2)
    assert jobs.result(jobs.put("version"))[0] == 3, "without threads again"
    wait_one_template(worker)


def test_a_worker_that_drains_loads_nothing(
    versions: Versions, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker("versioned").wait_started()
    job_id, _ = hold(jobs, folder / "a")
    worker.signal(signal.SIGTERM)
    wait_until(lambda: worker.probe("/readyz")[0] == 503, "it drains")

    versions.write(2)
    worker.signal(signal.SIGHUP)
    worker.wait_event(DRAINS)
    (folder / "a.go").touch()

    assert worker.wait() == 0
    assert jobs.get(job_id).result == 1
    assert not worker.events(LOADED)


def test_a_drain_ends_an_import_that_is_under_way(
    versions: Versions, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker("versioned").wait_started()
    job_id, _ = hold(jobs, folder / "a")
    seen = folder / "imported"
    versions.write(2, f"Path({str(seen)!r}).write_text(str(os.getpid())); time.sleep(60)")
    worker.signal(signal.SIGHUP)
    wait_until(lambda: seen.exists() and seen.read_text(), "the import is under way")

    worker.signal(signal.SIGTERM)
    wait_until(lambda: not is_alive(int(seen.read_text())), "the import ended")
    (folder / "a.go").touch()

    assert worker.wait() == 0
    assert jobs.get(job_id).result == 1
    assert not worker.events("reload_failed")


def test_asked_during_the_first_import(
    versions: Versions, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    seen, go = folder / "imported", folder / "go"
    wait = f"""
    Path({str(seen)!r}).touch()
    while not Path({str(go)!r}).exists():
        time.sleep(0.005)
    """
    versions.write(1, wait)
    worker = start_worker("versioned")
    wait_until(seen.exists, "the import is under way")
    wait_until(lambda: process.catches(worker.pid, signal.SIGHUP), "the supervisor listens")

    versions.write(2)
    worker.signal(signal.SIGHUP)
    worker.wait_event(TOLD)
    go.touch()

    worker.wait_event(LOADED)
    assert jobs.result(jobs.put("version"))[0] == 2


def test_a_terminal_that_goes_away_ends_the_worker(
    versions: Versions, start_worker: StartWorker
) -> None:
    ours, theirs = pty.openpty()
    try:
        worker = start_worker("versioned", stdin=theirs).wait_started()
        worker.signal(signal.SIGHUP)

        assert worker.wait() == 0
    finally:
        os.close(ours)
        os.close(theirs)
    assert worker.events("worker_draining")
