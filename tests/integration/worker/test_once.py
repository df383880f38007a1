"""Blocks that are done once per key, in jobs of real workers."""

from __future__ import annotations

from pathlib import Path

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.support.waiting import wait_until


def marks(folder: Path, what: str) -> list[str]:
    return sorted(found.name for found in folder.glob(f"{what}.*"))


def test_whoever_comes_meanwhile_waits_for_the_end_and_does_nothing(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    start_worker("charges", slots=2, async_slots=2).wait_started()
    first = jobs.put("charge", folder=str(folder))
    wait_until(lambda: bool(marks(folder, "began")), "the block began")
    others = [jobs.put("charge", folder=str(folder)), jobs.put("charge_async", folder=str(folder))]
    wait_until(lambda: all(jobs.get(each).releases for each in others), "they were given back")

    (folder / "go").touch()

    assert jobs.result(first) is True
    assert [jobs.result(each) for each in others] == [False, False]
    assert [jobs.get(each).attempt for each in others] == [1, 1], "that is no attempt"
    assert "once('charge')" in jobs.get(others[0]).history[0].cause
    assert len(marks(folder, "charged")) == 1


def test_the_block_of_a_job_that_died_is_taken_over(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    start_worker("charges", slots=1, async_slots=2).wait_started()

    died = jobs.put("charge_and_die", folder=str(folder))
    jobs.wait_dead(died)

    assert jobs.result(jobs.put("charge_async", folder=str(folder))) is True
    assert len(marks(folder, "charged")) == 1
