"""SIGUSR1: the stacks of all processes are in the log, also of those that are stuck."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess, children_of
from tests.support.process_tree import command_of
from tests.support.waiting import wait_until
from tidework.worker import process


def hold(jobs: Jobs, path: Path, task: str = "hold", **params: Any) -> str:
    job_id = jobs.put(task, path=str(path), **params)
    wait_until(path.with_suffix(".began").exists, "the job runs")
    return job_id


def stacks(worker: WorkerProcess, count: int) -> dict[str, list[dict[str, Any]]]:
    """Have them logged; ``count`` processes by their kind."""
    before = len(worker.events("stacks_reported"))
    worker.signal(signal.SIGUSR1)
    worker.wait_event("stacks_reported", before + count)
    found: dict[str, list[dict[str, Any]]] = {}
    for line in worker.events("stacks_reported")[before:]:
        found.setdefault(line["of"], []).append(line)
    assert all(line["pid"] == worker.pid for lines in found.values() for line in lines)
    return found


def test_every_process_tells_what_it_does(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker(slots=2).wait_started()
    children = worker.children(2)
    job_id = hold(jobs, folder / "a")

    for _ in range(2):
        found = stacks(worker, 4)

        (supervisor,), (template,) = found["supervisor"], found["template"]
        assert supervisor["of_pid"] == worker.pid
        assert "_serve" in supervisor["stacks"], "its asyncio tasks"
        assert (template["of_pid"], "serve" in template["stacks"]) == (worker.template(), True)
        busy, idle = found["child"]
        assert {busy["of_pid"], idle["of_pid"]} == set(children)
        assert "in hold" in busy["stacks"]
        assert [(job["id"], job["task"]) for job in busy["jobs"]] == [(job_id, "hold")]
        assert "in _next_job" in idle["stacks"]
        assert not any("stuck" in line for lines in found.values() for line in lines)
    (folder / "a.go").touch()
    assert jobs.result(job_id) == "held", "nothing has happened to the job"
    assert worker.children(2) == children


def test_a_child_that_holds_the_interpreter(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker(slots=2, hard_timeout_seconds=8).wait_started()
    wait_until(
        lambda: not any("stuck" in child for child in stacks(worker, 4)["child"]),
        "both children are ready",
    )
    jobs.put("hold_interpreter", path=str(folder / "a"))
    wait_until((folder / "a").exists, "the job runs")

    stuck, idle = stacks(worker, 4)["child"]

    assert "in hold_interpreter" in stuck["stacks"]
    assert "no Python code has run" in stuck["stuck"]
    assert "stuck" not in idle
    wait_until(
        lambda: worker.metric("tidework_jobs_dead_total"), "the timeout strikes all the same"
    )


def test_a_child_that_is_stopped(start_worker: StartWorker, jobs: Jobs, folder: Path) -> None:
    worker = start_worker().wait_started()
    job_id = hold(jobs, folder / "a")
    (child,) = worker.children()
    os.kill(child, signal.SIGSTOP)
    try:
        (found,) = stacks(worker, 3)["child"]
    finally:
        os.kill(child, signal.SIGCONT)

    assert "it is stopped" in found["stuck"]
    (folder / "a.go").touch()
    assert jobs.result(job_id) == "held"
    (later,) = stacks(worker, 3)["child"]
    assert "in _next_job" in later["stacks"]
    assert "in hold" not in later["stacks"], "what it wrote late is not taken for new"


def test_a_task_that_takes_the_signal_for_itself(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker().wait_started()
    one = hold(jobs, folder / "a", "take_signals", numbers=[signal.SIGUSR1])
    (found,) = stacks(worker, 3)["child"]
    assert "in take_signals" in found["stacks"], "there is another one"
    (folder / "a.go").touch()
    jobs.result(one)

    both = hold(jobs, folder / "b", "take_signals", numbers=[signal.SIGUSR1, signal.SIGWINCH])
    (found,) = stacks(worker, 3)["child"]
    assert "took SIGUSR1 for itself" in found["stuck"]
    (folder / "b.go").touch()
    jobs.result(both)


def test_jobs_of_an_event_loop(start_worker: StartWorker, jobs: Jobs, folder: Path) -> None:
    worker = start_worker("loops", async_slots=3).wait_started()
    ids = [hold(jobs, folder / name) for name in ("a", "b")]

    found = stacks(worker, 3)["child"]

    (loop,) = [line for line in found if line.get("jobs")]
    assert sorted(job["id"] for job in loop["jobs"]) == sorted(ids)
    assert loop["stacks"].count("in hold\n") == 2
    for name in ("a", "b"):
        (folder / f"{name}.go").touch()


def test_children_that_are_no_forks(start_worker: StartWorker, jobs: Jobs) -> None:
    worker = start_worker("threads").wait_started()
    jobs.result(jobs.put("whoami"))

    found = stacks(worker, 3)

    (child,) = found["child"]
    assert "in _next_job" in child["stacks"]
    assert child["stacks"].count("hread 0x") == 2, "its own thread, and that of the application"


def test_an_import_that_hangs(
    start_worker: StartWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hanging.py").write_text(
        "import time\nopen(__file__ + '.began', 'w').close()\ntime.sleep(60)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    worker = start_worker("hanging")
    wait_until((tmp_path / "hanging.py.began").exists, "the import is under way")
    wait_until(lambda: process.catches(worker.pid, signal.SIGUSR1), "the supervisor listens")

    (template,) = stacks(worker, 2)["template"]

    assert "hanging.py" in template["stacks"]
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_template_that_is_not_yet_ready_to_answer_is_not_ended_by_it(
    start_worker: StartWorker,
    jobs: Jobs,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It starts afresh, and gets little time to run."""
    slow = folder / "slow"
    (tmp_path / "sitecustomize.py").write_text(
        f"import os, time\nwhile os.path.exists({str(slow)!r}):\n    time.sleep(0.01)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    worker = start_worker().wait_started()
    first = worker.template()
    slow.touch()
    os.kill(first, signal.SIGKILL)

    # Not a child of the first one, which falls to the worker.
    def fresh() -> int | None:
        found = [p for p in children_of(worker.pid) if "worker.child.template" in command_of(p)]
        return found[0] if found else None

    second = wait_until(fresh, "another one")

    (told,) = stacks(worker, 2)["template"]
    slow.unlink()

    assert told["of_pid"] == second
    assert "it has not answered" in told["stuck"]
    assert jobs.result(jobs.put("add", a=1, b=2)) == 3
    assert worker.template() == second


def test_signals_in_a_row_are_answered_and_end_nothing(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker().wait_started()
    job_id = hold(jobs, folder / "a")
    (child,) = worker.children()

    for _ in range(100):
        worker.signal(signal.SIGUSR1)
        for pid in (child, worker.template()):
            os.kill(pid, signal.SIGUSR1)
            os.kill(pid, signal.SIGWINCH)
    worker.wait_event("stacks_reported", 3)

    (folder / "a.go").touch()
    assert jobs.result(job_id) == "held"
    assert worker.children() == [child]
