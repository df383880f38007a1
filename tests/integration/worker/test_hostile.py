"""Hostile jobs: each ends as it should with its cause in words, and harms nobody.

What is proved elsewhere is not repeated: crashes, closed descriptors, orphans of a drained worker
(test_outcomes.py), event loops (test_async_slots.py), commands (test_commands.py).
"""

from __future__ import annotations

import secrets
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker, workers
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess, children_of, is_alive
from tests.support.servers import ValkeyServer
from tests.support.waiting import wait_until
from tidework.client import Client
from tidework.model.backlog import JobRecord
from tidework.model.job import JobState
from tidework.model.outcome import ERROR_TEXT_LIMIT, JobError
from tidework.settings import Settings

FLOOD = 50_000_000


@pytest.fixture(scope="module")
def shared(
    valkey: ValkeyServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[WorkerProcess, Jobs]]:
    """One worker with two slots for the tests that only look at their own jobs."""
    namespace = f"hostile-{secrets.token_hex(4)}"
    jobs = Jobs(Client(Settings(redis_url=valkey.url, namespace=namespace)))
    with workers(valkey.url, namespace, tmp_path_factory.mktemp("hostile")) as start:
        yield start("menaces", slots=2).wait_started(), jobs


@contextmanager
def innocent_beside(worker: WorkerProcess, jobs: Jobs, folder: Path) -> Iterator[None]:
    """A job that runs in the other slot meanwhile; afterwards all is as it was."""
    innocent = jobs.put("hold", path=str(folder / "innocent"))
    wait_until((folder / "innocent.began").exists, "the innocent runs")
    yield
    assert jobs.result(jobs.put("add", a=1, b=1)) == 2, "the slot takes the next job"
    (folder / "innocent.go").touch()
    assert jobs.result(innocent) == "held"
    assert jobs.get(innocent).deliveries == 1
    assert worker.probe("/livez")[0] == 200
    worker.wait_reaped()
    wait_until(lambda: not any(map(children_of, worker.children(2))), "no orphan is left")


def error_of(record: JobRecord) -> JobError:
    """Why it is dead."""
    assert record.error is not None
    return record.error


@pytest.mark.parametrize(
    "task", ["spin_in_c", "spin_in_python", "sleep_deaf", "stop_myself", "wait_for_deaf_threads"]
)
def test_what_hears_nothing_ends_at_its_timeout(
    shared: tuple[WorkerProcess, Jobs], folder: Path, task: str
) -> None:
    worker, jobs = shared
    with innocent_beside(worker, jobs, folder):
        dead = jobs.wait_dead(jobs.put(task, path=str(folder / "pid")))

        assert (error_of(dead).type, error_of(dead).cause) == ("Timeout", "timeout")
        assert error_of(dead).message == "stopped at the hard timeout of 0.4 s"
        assert dead.losses == 0
        assert not is_alive(int((folder / "pid").read_text()))


@pytest.mark.parametrize(
    ("task", "cause"), [("kill_my_group", "signal 9 (SIGKILL)"), ("scribble", "signal 9 (SIGKILL)")]
)
def test_what_breaks_its_child_is_poison(
    shared: tuple[WorkerProcess, Jobs], folder: Path, task: str, cause: str
) -> None:
    worker, jobs = shared
    with innocent_beside(worker, jobs, folder):
        dead = jobs.wait_dead(jobs.put(task))

        assert dead.losses == 3
        assert error_of(dead).type == "WorkerLost"
        assert cause in error_of(dead).message


@pytest.mark.parametrize(
    ("task", "params", "kind", "message"),
    [
        ("raise_odd", {"kind": "outrage"}, "Outrage", "no exception"),
        ("raise_odd", {"kind": "interrupt"}, "KeyboardInterrupt", ""),
        ("raise_odd", {"kind": "exit"}, "SystemExit", "not now"),
        ("raise_odd", {"kind": "generator"}, "GeneratorExit", ""),
        ("raise_odd", {"kind": "unspeakable"}, "Unspeakable", "its text cannot be read"),
        ("raise_odd", {"kind": "unstoppable"}, "Unstoppable", "cannot be read: KeyboardInterrupt"),
        ("raise_odd", {"kind": "secretive"}, "Secretive", "cannot be read: Unstoppable"),
        ("raise_odd", {"kind": "deceitful"}, "Deceitful", "cannot be read: SystemExit"),
        ("raise_odd", {"kind": "long"}, "ValueError", "characters left out"),
        ("raise_odd", {"kind": "memory"}, "MemoryError", ""),
        ("raise_odd", {"kind": "bytes"}, "ValueError", r"caf\udce9.txt"),
        ("take_trap", {"trap": 1}, "KeyboardInterrupt", ""),
        ("recurse", {}, "RecursionError", "maximum recursion depth"),
        ("write_on_a_full_disk", {}, "OSError", "No space left on device"),
        ("write_beyond_the_limit", {"path": "FILE"}, "OSError", "File too large"),
    ],
)
def test_a_failure_of_any_kind_or_size_costs_its_attempt_alone(
    shared: tuple[WorkerProcess, Jobs],
    folder: Path,
    task: str,
    params: dict[str, str | int],
    kind: str,
    message: str,
) -> None:
    worker, jobs = shared
    given = {n: str(folder / "file") if v == "FILE" else v for n, v in params.items()}
    with innocent_beside(worker, jobs, folder):
        dead = jobs.wait_dead(jobs.put(task, **given))

        assert error_of(dead).type == kind
        assert message in error_of(dead).message
        assert len(error_of(dead).message) < 2 * ERROR_TEXT_LIMIT
        assert (dead.losses, dead.deliveries) == (0, 1)


def test_a_result_with_code_that_would_end_its_process_is_a_success(
    shared: tuple[WorkerProcess, Jobs], folder: Path
) -> None:
    worker, jobs = shared
    with innocent_beside(worker, jobs, folder):
        job_id = jobs.put("return_trap")
        wait_until(lambda: jobs.get(job_id).state is JobState.SUCCEEDED, "its work is done")
        assert jobs.get(job_id).deliveries == 1


def test_a_result_that_is_too_long_costs_nothing_but_itself(
    shared: tuple[WorkerProcess, Jobs], folder: Path
) -> None:
    worker, jobs = shared
    with innocent_beside(worker, jobs, folder):
        found = jobs.wait_state(jobs.put("return_much"), JobState.SUCCEEDED)

        assert found.result is None
        assert "50000002 bytes of JSON, the limit is" in found.result_refusal
        assert (found.losses, found.deliveries) == (0, 1)


def test_a_daemon_ends_with_the_child_of_the_job_that_started_it(
    shared: tuple[WorkerProcess, Jobs], folder: Path
) -> None:
    worker, jobs = shared
    with innocent_beside(worker, jobs, folder):
        hanging = jobs.put("fork_twice_and_hang", path=str(folder / "daemon"))
        wait_until((folder / "daemon").exists, "the daemon runs")
        daemon = int((folder / "daemon").read_text())
        worker.note(daemon)

        assert error_of(jobs.wait_dead(hanging)).cause == "timeout"
        wait_until(lambda: not is_alive(daemon), "the daemon is gone")


def test_threads_that_never_end_keep_neither_the_child_nor_the_worker(
    start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("menaces", recycle_jobs=2).wait_started()
    child = jobs.result(jobs.put("leave_threads"))
    assert jobs.result(jobs.put("whoami"))["pid"] == child, "it goes on with them"

    wait_until(lambda: not is_alive(child), "it is recycled with them")
    assert jobs.result(jobs.put("leave_threads")) != child
    worker.process.terminate()

    assert worker.wait() == 0


def test_a_child_below_which_ended_processes_pile_up_is_replaced(
    start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("menaces").wait_started()

    child = jobs.result(jobs.put("leave_zombies", count=20))

    reason = worker.wait_event("child_recycled")["reason"]
    assert reason == "20 ended processes that nobody reaped"
    wait_until(lambda: not is_alive(child), "it ends")
    worker.wait_reaped()
    assert jobs.result(jobs.put("whoami"))["pid"] != child


def test_a_flood_of_output_passes(start_worker: StartWorker, jobs: Jobs) -> None:
    worker = start_worker("menaces", stdout=subprocess.PIPE).wait_started()
    stdout = worker.process.stdout
    assert stdout is not None
    passed = []

    def drain() -> None:
        while data := stdout.read(1 << 20):
            passed.append(len(data))

    reader = threading.Thread(target=drain)
    reader.start()
    child = jobs.result(jobs.put("flood"))

    assert jobs.result(jobs.put("whoami"))["pid"] == child
    worker.process.terminate()
    assert worker.wait() == 0
    reader.join()
    stdout.close()
    assert sum(passed) == FLOOD


def test_output_that_nobody_takes_holds_up_who_writes_it_and_nobody_else(
    start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("menaces", slots=2, stdout=subprocess.PIPE).wait_started()
    stdout = worker.process.stdout
    assert stdout is not None
    with stdout:
        flooding = jobs.put("flood_in_vain")

        assert jobs.result(jobs.put("add", a=1, b=1)) == 2
        assert error_of(jobs.wait_dead(flooding)).cause == "timeout"
        assert jobs.result(jobs.put("add", a=1, b=1)) == 2
        worker.process.terminate()
        assert worker.wait() == 0
