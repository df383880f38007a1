"""What real workers do is what the statistics of their queue say."""

from __future__ import annotations

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs


def test_every_end_of_a_job_is_counted_by_its_task(start_worker: StartWorker, jobs: Jobs) -> None:
    start_worker(slots=2).wait_started()

    for a in range(5):
        assert jobs.result(jobs.put("add", a=a, b=1)) == a + 1
    jobs.wait_dead(jobs.put("fail", reason="no"))
    jobs.wait_dead(jobs.put("bury", reason="no"))

    add, fail, bury = (jobs.totals(task) for task in ("add", "fail", "bury"))
    assert (add.enqueued, add.started, add.succeeded, add.success_rate) == (5, 5, 5, 1.0)
    assert add.run.count == add.wait.count == 5
    assert (fail.started, fail.failed, fail.retried, fail.dead) == (2, 2, 1, 1)
    assert (bury.failed, bury.dead, bury.success_rate) == (1, 1, 0.0)
    assert jobs.totals().started == 8
