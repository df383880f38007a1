"""A queue, as lists and pages show it."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel, Field

from tidework.api.models.moments import Moment
from tidework.api.models.scaling import ScaledModel, scaled_model
from tidework.broker.broker import Broker
from tidework.model.backlog import QueueStats
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.model.scaled import ScalingRecord


class PauseModel(BaseModel):
    """Since when a queue is paused, and why."""

    since: Moment
    reason: str


class QueueModel(BaseModel):
    """Jobs of a queue by state, and its counters since it exists."""

    name: str
    namespace: str
    ready: int
    scheduled: int
    running: int
    succeeded: int
    dead: int
    cancelled: int
    inbox: int = Field(description="Documents of the inbox that are not validated yet.")
    oldest_wait_seconds: float = Field(
        description="Since when the oldest ready or due job waits; 0 without one."
    )
    pause: PauseModel | None
    workers: int = Field(description="Workers that were seen within the last 30 s.")
    stale_workers: int = Field(description="Workers that were not, for some minutes.")
    has_no_worker: bool = Field(description="Jobs could run, and no worker was seen.")
    scaling: ScaledModel | None = Field(
        description="The latest decision of the autoscaler; null where there is none."
    )
    counters: dict[str, int] = Field(description="Sums of transitions since the queue exists.")


async def read_queue(broker: Broker, queue: QueueName) -> QueueModel:
    """The model of one queue, by three reads."""
    found, workers, record = await asyncio.gather(
        broker.stats(queue), broker.workers(queue), broker.scaling(queue)
    )
    living = sum(not worker.is_stale for worker in workers)
    return queue_model(queue, found, (living, len(workers) - living), record)


def queue_model(
    queue: QueueName, found: QueueStats, workers: tuple[int, int], record: ScalingRecord
) -> QueueModel:
    """The model of what was read. workers: how many live, and how many are stale"""
    states = found.states
    pause = found.pause
    return QueueModel(
        name=queue.name,
        namespace=queue.namespace,
        ready=states[JobState.READY],
        scheduled=states[JobState.SCHEDULED],
        running=states[JobState.RUNNING],
        succeeded=states[JobState.SUCCEEDED],
        dead=states[JobState.DEAD],
        cancelled=states[JobState.CANCELLED],
        inbox=found.inbox,
        oldest_wait_seconds=found.oldest_age,
        pause=pause and PauseModel(since=pause.since, reason=pause.reason),
        workers=workers[0],
        stale_workers=workers[1],
        has_no_worker=found.backlog > 0 and workers[0] == 0,
        scaling=record.latest and scaled_model(record.latest),
        counters=dict(found.counters),
    )
