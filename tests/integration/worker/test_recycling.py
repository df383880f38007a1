"""Children are replaced by count and by memory, between two jobs, and no job is lost by it."""

from __future__ import annotations

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs


def test_by_count(start_worker: StartWorker, jobs: Jobs) -> None:
    worker = start_worker(recycle_jobs=5).wait_started()

    ids = jobs.put_many("whoami", [{} for _ in range(23)])

    pids = [jobs.result(job_id)["pid"] for job_id in ids]
    per_child = [pids.count(pid) for pid in dict.fromkeys(pids)]
    assert per_child == [5, 5, 5, 5, 3]
    assert all(jobs.get(job_id).deliveries == 1 for job_id in ids)
    recycled = worker.events("child_recycled")
    assert [line["reason"] for line in recycled] == ["5 jobs"] * 4
    worker.wait_reaped()


def test_by_memory(start_worker: StartWorker, jobs: Jobs) -> None:
    worker = start_worker(recycle_memory_mib=100).wait_started()
    before = jobs.result(jobs.put("whoami"))["pid"]

    jobs.result(jobs.put("grow", mib=120))

    assert worker.wait_event("child_recycled")["reason"].endswith("MiB")
    assert jobs.result(jobs.put("whoami"))["pid"] != before
