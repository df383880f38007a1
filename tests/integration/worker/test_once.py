"""Blocks that are done once per key, in jobs of real workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.support.waiting import wait_until


def marks(folder: Path, what: str) -> list[str]:
    return sorted(found.name for found in folder.glob(f"{what}.*"))


@pytest.mark.parametrize(
    ("places", "task"), [({"slots": 3}, "charge"), ({"async_slots": 3}, "charge_async")]
)
def test_whoever_comes_meanwhile_waits_for_the_end_and_does_nothing(
    start_worker: StartWorker, jobs: Jobs, folder: Path, places: dict[str, int], task: str
) -> None:
    start_worker("charges", **places).wait_started()
    first = jobs.put(task, folder=str(folder), waits=True)
    wait_until(lambda: bool(marks(folder, "began")), "the block began")
    others = [jobs.put(each, folder=str(folder)) for each in (task, "charge_async")]
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
    start_worker("charges", slots=1).wait_started()

    died = jobs.put("charge_and_die", folder=str(folder))
    jobs.wait_dead(died)

    assert jobs.result(jobs.put("charge_async", folder=str(folder))) is True
    assert len(marks(folder, "charged")) == 1
