"""What is known of a job and its queue at one moment, by a bounded number of reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tidework.broker.broker import Broker
from tidework.clock import from_ms
from tidework.model.backlog import JobRecord, Pause
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.roster import Roster, WorkerEntry

MOST_LOOKED_INTO = 200
"""Queues of the namespace in which a job is looked for that is not in its own."""


@dataclass(frozen=True, slots=True)
class Facts:
    """now: by Redis' clock, as every other moment here

    record:       None if the job is not known; then:
    forgotten_at: when it ended, if that was less than ten minutes ago
    elsewhere:    another queue of the namespace that has it
    ahead:        ready jobs before it, None if it is not ready
    tasks:        that workers have announced
    service_time: task -> moving average of its seconds
    active_runs:  of its CronTask, if it is a run of one
    """

    queue: QueueName
    job_id: str
    now: datetime
    record: JobRecord | None = None
    forgotten_at: datetime | None = None
    elsewhere: QueueName | None = None
    ahead: int | None = None
    pause: Pause | None = None
    tasks: tuple[str, ...] = ()
    workers: tuple[WorkerEntry, ...] = ()
    service_time: Mapping[str, float] = field(default_factory=dict)
    active_runs: tuple[str, ...] = ()


async def gather_facts(broker: Broker, queue: QueueName, job_id: str) -> Facts:
    """The facts of one job. Raises BrokerError.

    They are not of one instant: a job that moves meanwhile is told as it was or as it is.
    """
    record = await broker.get_job(queue, job_id)
    load = await broker.gather(queue, horizon=timedelta(0))
    now = from_ms(load.now_ms)
    if record is None:
        forgotten_at = await broker.forgotten_at(queue, job_id)
        elsewhere = None if forgotten_at else await _elsewhere(broker, queue, job_id)
        return Facts(queue, job_id, now, forgotten_at=forgotten_at, elsewhere=elsewhere)
    is_ready = record.state is JobState.READY
    cron = await broker.cron_record(queue, record.cron) if record.cron else None
    return Facts(
        queue,
        job_id,
        now,
        record=record,
        ahead=await broker.ahead_of(queue, job_id) if is_ready else None,
        pause=(await broker.stats(queue)).pause,
        tasks=await broker.tasks(queue),
        workers=await Roster(broker, [queue]).entries(),
        service_time=load.service_time,
        active_runs=() if cron is None else cron.active,
    )


async def _elsewhere(broker: Broker, queue: QueueName, job_id: str) -> QueueName | None:
    known = [each for each in await broker.queues() if each.namespace == queue.namespace]
    for other in known[:MOST_LOOKED_INTO]:
        if other != queue and await broker.get_job(other, job_id) is not None:
            return other
    return None
