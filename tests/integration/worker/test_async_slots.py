"""Async slots: many jobs on one event loop; what one of them does wrong, others survive."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.holds import Holds
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess, is_alive
from tests.support.waiting import wait_until
from tidework.model.job import JobState
from tidework.worker.worker import MISCONFIGURED


def start(start_worker: StartWorker, **settings: float) -> WorkerProcess:
    given = {"async_slots": 10, "lease_seconds": 1.5, **settings}
    return start_worker("loops", **given).wait_started()


def test_jobs_run_at_once_in_one_process(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker)
    names = [f"h{number}" for number in range(10)]
    ids = holds.put(*names)

    shared = holds.pids(*names)

    assert sorted(set(shared)) == worker.children(1)
    assert worker.metric("tidework_worker_slots") == 10
    holds.let_end(*names)
    assert [jobs.result(job_id) for job_id in ids] == ["held"] * 10
    assert [jobs.get(job_id).deliveries for job_id in ids] == [1] * 10


def test_a_sync_task_by_name_is_a_dead_letter_with_the_remedy(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    start(start_worker)
    (held,) = holds.put("a")
    holds.pids("a")

    dead = jobs.wait_dead(jobs.put("add", a=1, b=2))

    assert (dead.deliveries, dead.losses) == (1, 0)
    assert dead.error is not None
    assert (dead.error.type, dead.error.cause) == ("NeedsSlots", "needs_slots")
    assert "give this queue slots instead of async slots" in dead.error.message
    holds.let_end("a")
    assert jobs.result(held) == "held"


def test_an_application_with_a_sync_task_for_the_queue_is_refused_at_start(
    start_worker: StartWorker,
) -> None:
    worker = start_worker("loops", async_slots=2, queue=["jobs", "with-slots"])

    assert worker.wait() == MISCONFIGURED
    assert "queue 'with-slots': the workers of this queue have async slots" in worker.text()
    assert "(add); make it an 'async def'" in worker.text()


def test_no_more_jobs_run_at_once_than_there_are_places(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    start(start_worker, async_slots=2)
    ids = holds.put("a", "b", "c")
    holds.pids("a", "b")

    assert not holds.began("c")
    holds.let_end("a", "b")
    holds.pids("c")
    holds.let_end("c")

    assert [jobs.result(job_id) for job_id in ids] == ["held"] * 3


def test_without_async_slots_async_tasks_run_one_at_a_time_in_a_slot(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker, async_slots=0)
    first, second = holds.put("a", "b")
    assert holds.pids("a") == worker.children(1)

    assert not holds.began("b")
    holds.let_end("a", "b")

    assert [jobs.result(first), jobs.result(second)] == ["held", "held"]
    found = jobs.result(jobs.put("remember", value="x"))
    assert found == ["", "x", "x"]
    assert jobs.result(jobs.put("leave_a_task_that_exits")) == "went on"
    assert [jobs.result(jobs.put("whoami"))["pid"]] == worker.children(1), "nobody died"


def test_after_a_crash_each_job_that_ran_is_lost_once_and_runs_alone(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker)
    ids = holds.put("a", "b")
    (shared,) = set(holds.pids("a", "b"))

    poison = jobs.put("read_null")

    dead = jobs.wait_dead(poison)
    assert (dead.losses, dead.attempt) == (3, 0)
    holds.let_end("a", "b")
    assert [jobs.result(job_id) for job_id in ids] == ["held"] * 2
    assert [jobs.get(job_id).losses for job_id in ids] == [1, 1], "only of the first crash"
    assert [jobs.get(job_id).attempt for job_id in ids] == [1, 1]
    assert not is_alive(shared)
    worker.wait_reaped()


def test_jobs_that_were_lost_do_not_meet_again(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker)
    holds.put("a", "b")
    (shared,) = set(holds.pids("a", "b"))

    os.kill(shared, signal.SIGKILL)

    one, two = holds.pids("a", "b")
    assert len({shared, one, two}) == 3
    holds.let_end("a", "b")
    wait_until(lambda: worker.metric("tidework_jobs_succeeded_total") == 2, "both succeed")


def test_a_timeout_cancels_one_and_leaves_the_others(
    start_worker: StartWorker, jobs: Jobs, holds: Holds, folder: Path
) -> None:
    worker = start(start_worker)
    (held,) = holds.put("a")
    (shared,) = holds.pids("a")

    dead = jobs.wait_dead(jobs.put("endless", path=str(folder / "cleaned")))

    assert dead.error is not None
    assert dead.error.cause == "timeout"
    assert (folder / "cleaned").exists(), "it was cancelled, not killed"
    assert shared in worker.children(1)
    holds.let_end("a")
    assert jobs.result(held) == "held"
    assert jobs.get(held).deliveries == 1


def test_a_soft_timeout_reaches_one_and_leaves_the_others(
    start_worker: StartWorker, jobs: Jobs, holds: Holds, folder: Path
) -> None:
    worker = start(start_worker)
    (held,) = holds.put("a")
    (shared,) = holds.pids("a")

    dead = jobs.wait_dead(jobs.put("end_in_order", path=str(folder / "tidied")))

    assert dead.error is not None
    assert (dead.error.type, dead.error.cause) == ("SoftTimeout", "soft_timeout")
    assert (folder / "tidied").read_text() == str(shared)
    assert shared in worker.children(1)
    holds.let_end("a")
    assert jobs.result(held) == "held"


def test_a_job_that_goes_on_after_its_cancel_is_killed_at_the_cost_of_its_child(
    start_worker: StartWorker, jobs: Jobs, holds: Holds, folder: Path
) -> None:
    worker = start(start_worker)
    (held,) = holds.put("a")
    (shared,) = holds.pids("a")

    dead = jobs.wait_dead(jobs.put("stubborn", path=str(folder / "stubborn")))

    assert dead.error is not None
    assert dead.error.cause == "timeout"
    assert (folder / "stubborn.told").exists()
    (again,) = holds.pids("a")
    assert again != shared
    record = jobs.get(held)
    assert (record.losses, record.releases, record.attempt) == (0, 1, 1), "it is innocent"
    holds.let_end("a")
    assert jobs.result(held) == "held"
    worker.wait_event("cancel_overdue")


def test_a_blocked_loop_is_told_and_killed_at_the_timeout_of_a_job(
    start_worker: StartWorker, jobs: Jobs, holds: Holds, folder: Path
) -> None:
    worker = start(start_worker)
    (held,) = holds.put("a")
    (shared,) = holds.pids("a")

    dead = jobs.wait_dead(jobs.put("block", path=str(folder / "blocked")))

    assert dead.error is not None
    assert dead.error.cause == "timeout"
    assert not is_alive(shared)
    holds.pids("a")
    record = jobs.get(held)
    assert (record.losses, record.attempt) == (1, 1), "who blocked it cannot be told"
    assert record.error is not None
    assert record.error.cause == "blocked"
    holds.let_end("a")
    assert jobs.result(held) == "held"
    told = worker.events("loop_blocked")
    assert any("block" in line["jobs"] for line in told)


def test_a_loop_that_is_blocked_for_a_while_gets_no_jobs_and_loses_none(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker)
    (held,) = holds.put("a")
    (shared,) = holds.pids("a")
    os.kill(shared, signal.SIGSTOP)

    later = jobs.put("whoami")

    wait_until(lambda: jobs.get(later).releases > 0, "it is given back for others")
    worker.wait_event("loop_blocked")
    os.kill(shared, signal.SIGCONT)
    holds.let_end("a")
    assert jobs.result(held) == "held"
    assert jobs.get(held).deliveries == 1
    assert jobs.result(later)["pid"] == shared
    worker.wait_event("loop_free")


def test_a_cancelled_job_leaves_the_others(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker)
    one, two = holds.put("a", "b")
    (shared,) = set(holds.pids("a", "b"))

    jobs.client.cancel_sync(one, queue=jobs.queue)

    jobs.wait_state(one, JobState.CANCELLED)
    holds.let_end("b")
    assert jobs.result(two) == "held"
    assert jobs.get(two).deliveries == 1
    assert shared in worker.children(1)


def test_a_drain_lets_them_end(start_worker: StartWorker, jobs: Jobs, holds: Holds) -> None:
    worker = start(start_worker)
    ids = holds.put("a", "b")
    holds.pids("a", "b")

    worker.signal(signal.SIGTERM)
    worker.wait_event("worker_draining")
    late = jobs.put("whoami")
    holds.let_end("a", "b")

    assert worker.wait() == 0
    assert [jobs.get(job_id).state for job_id in ids] == [JobState.SUCCEEDED] * 2
    assert jobs.get(late).state is JobState.READY


def test_a_second_signal_hands_them_back_uncounted(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker)
    ids = holds.put("a", "b")
    holds.pids("a", "b")

    worker.signal(signal.SIGTERM)
    worker.wait_event("worker_draining")
    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    for job_id in ids:
        record = jobs.get(job_id)
        assert (record.state, record.attempt, record.losses) == (JobState.READY, 0, 0)


@pytest.mark.parametrize("kind", ["value", "exit", "interrupt", "cancelled"])
def test_whatever_a_job_raises_is_its_own_affair(
    start_worker: StartWorker, jobs: Jobs, holds: Holds, kind: str
) -> None:
    start(start_worker)
    (held,) = holds.put("a")
    holds.pids("a")

    dead = jobs.wait_dead(jobs.put("fail", kind=kind))

    assert dead.error is not None
    assert (dead.error.cause, dead.error.message) == ("exception", "on purpose")
    holds.let_end("a")
    assert jobs.result(held) == "held"
    assert jobs.get(held).deliveries == 1


def test_what_else_a_job_may_do(start_worker: StartWorker, jobs: Jobs, holds: Holds) -> None:
    start(start_worker)
    (held,) = holds.put("a")
    (shared,) = holds.pids("a")

    remembered = jobs.put_many("remember", [{"value": str(number)} for number in range(20)])
    for number, job_id in enumerate(remembered):
        assert jobs.result(job_id) == ["", str(number), str(number)], "a context of its own"
    whoami = jobs.put("whoami")
    assert jobs.result(whoami) == {"pid": shared, "id": whoami}
    much = jobs.wait_state(jobs.put("return_much"), JobState.SUCCEEDED)
    assert "the limit is" in much.result_refusal
    assert jobs.result(jobs.put("leave_a_task_that_exits")) == "went on"
    assert jobs.result(jobs.put("fork")) > 0
    holds.let_end("a")
    assert jobs.result(held) == "held"
    assert jobs.get(held).deliveries == 1


def test_a_recycled_child_finishes_what_it_has_while_another_takes_over(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    worker = start(start_worker, recycle_jobs=1, async_slots=3)
    (held,) = holds.put("a")
    (shared,) = holds.pids("a")

    for job_id in jobs.put_many("whoami", [{}] * 3):
        jobs.result(job_id)
    wait_until(lambda: jobs.result(jobs.put("whoami"))["pid"] != shared, "another child took over")

    assert shared in worker.children(2)
    holds.let_end("a")
    assert jobs.result(held) == "held"
    assert jobs.get(held).deliveries == 1
    wait_until(lambda: not is_alive(shared), "it ends when its last job has")
    worker.children(1)
    worker.wait_reaped()
