"""Queues of one worker whose jobs take places of different kinds: neither waits for the other's."""

from __future__ import annotations

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.holds import Holds
from tests.integration.worker.jobs import Jobs
from tests.support.waiting import wait_until

LEARNED = 80
"""Jobs of one kind after which a worker expects hardly any of the other in their queue."""


def test_async_jobs_go_on_while_a_queue_of_sync_jobs_waits_for_slots(
    start_worker: StartWorker, jobs: Jobs, holds: Holds
) -> None:
    holds.let_end("quick")
    start_worker("loops", async_slots=1, queue=["jobs", "events"]).wait_started()
    for job_id in holds.put(*["quick"] * LEARNED, task="hold_alone"):
        jobs.result(job_id)
    _, waits = holds.put("long", "next", task="hold_alone")
    holds.pids("long")
    wait_until(lambda: jobs.get(waits).releases, "what waits for the slot is given back")

    events = Jobs(jobs.client, "events")
    ids = events.put_many("whoami", [{}] * 10)

    assert all(events.result(job_id) for job_id in ids)
    assert not holds.began("next")
    holds.let_end("long", "next")
