"""Near the limit of its memory a worker ends its largest child, before the kernel ends it whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.support.waiting import wait_until

HARMLESS = 900
"""MiB at which a job stops to grow, guard or not."""


@pytest.mark.parametrize("task", ["swell", "swell_in_a_program"])
def test_a_job_that_grows_without_bound_is_a_dead_letter_and_harms_nobody(
    start_worker: StartWorker, jobs: Jobs, folder: Path, task: str
) -> None:
    worker = start_worker("menaces", slots=2, memory_limit_mib=300).wait_started()
    innocent = jobs.put("hold", path=str(folder / "innocent"))
    wait_until((folder / "innocent.began").exists, "the innocent runs")

    dead = jobs.wait_dead(jobs.put(task, most=HARMLESS))

    assert dead.losses == 3
    assert dead.error is not None
    assert (dead.error.type, dead.error.cause) == ("MemoryExceeded", "memory")
    assert "of 300 MiB were in use" in dead.error.message
    (folder / "innocent.go").touch()
    assert jobs.result(innocent) == "held"
    assert jobs.get(innocent).deliveries == 1
    assert jobs.result(jobs.put("add", a=1, b=1)) == 2
    worker.wait_reaped()


def test_a_job_that_was_only_large_makes_room_uncounted(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    # One loss would be the end of either.
    start_worker("menaces", slots=2, memory_limit_mib=600, poison_cap=1).wait_started()
    large = jobs.put("be_large", path=str(folder / "large"), mib=300)
    wait_until((folder / "large.began").exists, "the large one runs")

    greedy = jobs.put("swell", most=HARMLESS)

    dead = jobs.wait_dead(greedy)
    assert dead.error is not None
    assert dead.error.cause == "memory"
    (folder / "large.go").touch()
    assert jobs.result(large) == "held 300"
    record = jobs.get(large)
    assert (record.losses, record.releases, record.attempt) == (0, 1, 1)
    assert "had to make room" in record.history[0].cause
