"""Async jobs that were lost: each runs in a child of its own, and is treated as any job."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.holds import Holds
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess, is_alive
from tests.support.command_line import CommandLine
from tests.support.waiting import wait_until
from tidework.model.job import JobState

ASKED_TO_STOP = "worker_draining"


def start(start_worker: StartWorker, app: str = "loops", **settings: object) -> WorkerProcess:
    given = {"async_slots": 10, "lease_seconds": 1.5, **settings}
    return start_worker(app, **given).wait_started()


def lose(holds: Holds, *names: str) -> dict[str, int]:
    """Kill the child that the jobs share, once they run. Returns their pids when they do again."""
    (shared,) = set(holds.pids(*names))
    os.kill(shared, signal.SIGKILL)
    return {name: holds.pids(name)[0] for name in names}


def test_all_jobs_of_a_killed_worker_run_again_at_once_each_alone(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker)
    names = [f"h{number}" for number in range(6)]
    ids = holds.put(*names)
    (shared,) = set(holds.pids(*names))
    other = start(start_worker)

    worker.process.kill()

    again = [holds.pids(name)[0] for name in names]  # all of them, before any has ended
    assert len({shared, *again}) == 7
    assert set(again) < set(other.children(7))
    assert [jobs.get(job_id).losses for job_id in ids] == [1] * 6
    (between,) = holds.put("between")
    (pid,) = holds.pids("between")
    assert pid not in again, "what was not lost has the loop"
    holds.let_end(*names, "between")
    assert [jobs.result(job_id) for job_id in [*ids, between]] == ["held"] * 7
    other.children(1)
    other.wait_reaped()
    assert jobs.result(jobs.put("whoami"))["pid"] == pid, "afterwards all is as before"
    assert worker.wait() == -signal.SIGKILL


def test_a_second_death_is_a_loss_for_that_job_alone(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker)
    one, two = holds.put("a", "b")
    pids = lose(holds, "a", "b")
    (third,) = holds.put("c")
    (shared,) = holds.pids("c")

    os.kill(pids["a"], signal.SIGKILL)

    (again,) = holds.pids("a")
    assert len({again, shared, *pids.values()}) == 4
    holds.let_end("a", "b", "c")
    assert [jobs.result(job_id) for job_id in (one, two, third)] == ["held"] * 3
    assert [jobs.get(job_id).losses for job_id in (one, two, third)] == [2, 1, 0]
    assert [jobs.get(job_id).deliveries for job_id in (one, two, third)] == [3, 2, 1]
    assert is_alive(shared)
    worker.children(1)
    worker.wait_reaped()


def test_the_culprit_is_dead_at_the_cap_and_the_innocent_is_not_hurt_again(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker, poison_cap=3)
    (held,) = holds.put("a")
    (shared,) = holds.pids("a")

    dead = jobs.wait_dead(jobs.put("read_null"))

    assert (dead.losses, dead.attempt) == (3, 0)
    assert dead.error is not None
    assert "SIGSEGV" in dead.error.cause
    (alone,) = holds.pids("a")
    assert alone != shared
    holds.let_end("a")
    assert jobs.result(held) == "held"
    assert jobs.get(held).losses == 1
    worker.children(1)


def test_a_drain_lets_them_end(start_worker: StartWorker, jobs: Jobs, holds: Holds) -> None:
    worker = start(start_worker)
    ids = holds.put("a", "b")
    lose(holds, "a", "b")

    worker.signal(signal.SIGTERM)
    worker.wait_event(ASKED_TO_STOP)
    holds.let_end("a", "b")

    assert worker.wait() == 0
    assert [jobs.get(job_id).state for job_id in ids] == [JobState.SUCCEEDED] * 2


def test_a_second_signal_hands_them_back_uncounted(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker)
    ids = holds.put("a", "b")
    pids = lose(holds, "a", "b")

    worker.signal(signal.SIGTERM)
    worker.wait_event(ASKED_TO_STOP)
    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    for job_id in ids:
        record = jobs.get(job_id)
        assert (record.state, record.attempt, record.losses) == (JobState.READY, 0, 1)
    assert not any(map(is_alive, pids.values()))


def test_a_supervisor_that_is_killed_takes_them_along(
    start_worker: StartWorker, holds: Holds
) -> None:
    worker = start(start_worker)
    holds.put("a", "b")
    pids = lose(holds, "a", "b")

    worker.process.kill()

    wait_until(lambda: not any(map(is_alive, pids.values())), "they end with it")


def test_one_is_cancelled_as_any(start_worker: StartWorker, jobs: Jobs, holds: Holds) -> None:
    worker = start(start_worker)
    one, two = holds.put("a", "b")
    pids = lose(holds, "a", "b")

    jobs.client.cancel_sync(one, queue=jobs.queue)

    jobs.wait_state(one, JobState.CANCELLED)
    wait_until(lambda: not is_alive(pids["a"]), "its child ends")
    assert is_alive(pids["b"])
    holds.let_end("b")
    assert jobs.result(two) == "held"
    worker.children(1)
    worker.wait_reaped()


@pytest.mark.parametrize("task", ["block_always", "endless_always", "stubborn_always"])
def test_the_hard_timeout_holds(
    start_worker: StartWorker, jobs: Jobs, folder: Path, task: str
) -> None:
    worker = start(start_worker)
    job_id = jobs.put(task, path=str(folder / "job"))
    wait_until((folder / "job.1").exists, "it runs on the loop")
    os.kill(int((folder / "job.1").read_text()), signal.SIGKILL)

    dead = jobs.wait_dead(job_id)

    assert dead.error is not None
    assert (dead.losses, dead.error.cause) == (1, "timeout")
    alone = int((folder / "job.2").read_text())
    wait_until(lambda: not is_alive(alone), "its child ends")
    worker.children(1)
    worker.wait_reaped()


def test_what_looks_at_a_worker_shows_them(
    start_worker: StartWorker, jobs: Jobs, holds: Holds, redis_url: str, namespace: str
) -> None:
    worker = start(start_worker, worker_name="me")
    cli = CommandLine(redis_url, namespace, "worker")
    ids = dict(zip("ab", holds.put("a", "b"), strict=True))
    pids = lose(holds, "a", "b")

    cli.ok("stacks", "me")
    worker.signal(signal.SIGUSR1)

    found = json.loads(cli.ok("get", "me", "-o", "json"))
    assert {job["id"]: job["child"] for job in found["jobs"]} == {ids[n]: pids[n] for n in "ab"}
    assert found["busy"] == 2

    def stacks() -> dict[int, str]:
        lines = worker.events("stacks_reported")
        return {line["of_pid"]: line["stacks"] for line in lines if "stacks" in line}

    wait_until(lambda: set(pids.values()) <= set(stacks()), "their stacks are logged")
    assert all("in hold" in stacks()[pid] for pid in pids.values())
    assert worker.probe("/livez")[0] == 200
    holds.let_end("a", "b")


def test_a_template_that_dies_takes_them_along_and_they_run_again(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker, poison_cap=4)  # with 3 they would run apart: last_chance.py
    ids = holds.put("a", "b")
    pids = lose(holds, "a", "b")

    os.kill(worker.template(), signal.SIGKILL)

    again = [holds.pids(name)[0] for name in "ab"]
    assert not set(again) & set(pids.values())
    holds.let_end("a", "b")
    assert [jobs.result(job_id) for job_id in ids] == ["held"] * 2
    assert [jobs.get(job_id).losses for job_id in ids] == [2, 2]
    worker.children(1)
    worker.wait_reaped()


def test_where_children_are_not_forked_they_are_started_afresh(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker, "loops_threads")
    ids = holds.put("a", "b")

    pids = lose(holds, "a", "b")

    assert len(set(pids.values())) == 2
    holds.let_end("a", "b")
    assert [jobs.result(job_id) for job_id in ids] == ["held"] * 2
    assert [jobs.get(job_id).releases for job_id in ids] == [0, 0], "nobody gave them back"
    worker.children(1)


def test_one_that_grows_without_bound_is_a_dead_letter_and_its_neighbours_are_cleared(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker, memory_limit_mib=300)
    (held,) = holds.put("a")
    (shared,) = holds.pids("a")

    dead = jobs.wait_dead(jobs.put("swell", most=900))

    assert dead.losses == 3
    assert dead.error is not None
    assert dead.error.cause == "memory"
    (alone,) = holds.pids("a")
    assert alone != shared
    holds.let_end("a")
    assert jobs.result(held) == "held"
    assert jobs.get(held).losses == 1, "of the time when they shared a process"
    worker.children(1)
    worker.wait_reaped()
