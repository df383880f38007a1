"""Many workers of several queues: what one has no place for goes to others, not to all of them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.support.waiting import until
from tests.unit.worker.consumers import QUEUE, Bench, UnsteadyBroker
from tests.unit.worker.jobs import Source
from tidework.model.backlog import JobRecord
from tidework.model.job import Job, JobState

LEASE = timedelta(hours=1)
"""So long that every worker still waits as it began to."""
WORKERS = 24
"""More than the times that a job may be given back uncounted."""


async def test_a_job_for_which_nobody_has_a_place_any_more_costs_no_attempt() -> None:
    broker = UnsteadyBroker(LEASE)
    names = [f"w.{number}" for number in range(WORKERS)]
    fleet = [Bench(slots=2, lease=LEASE, broker=broker, name=name) for name in names]
    rivals = [Source(1) for _ in fleet]
    try:
        for bench, rival in zip(fleet, rivals, strict=True):
            rival.hungry = False
            bench.pool.add_source(rival)
            bench.start()
        await until(lambda: broker.waits >= WORKERS)
        for bench, rival in zip(fleet, rivals, strict=True):
            rival.add("x", "y")
            bench.pool.run()

        await broker.enqueue(QUEUE, [Job("a", "t", {}, max_attempts=1)])

        async def look() -> JobRecord | None:
            record = await fleet[0].job("a")
            return record if record.state is JobState.SCHEDULED else None

        found = await until(look, "it waits for its next attempt")
        assert found.attempt == 0, "with one more claim it would be buried, and never have run"
        assert found.releases < WORKERS
    finally:
        await asyncio.gather(*(bench.stop() for bench in fleet))
