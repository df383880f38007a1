"""A queue, as lists and pages show it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tidework.api.models.moments import Moment
from tidework.model.backlog import QueueStats
from tidework.model.identity import QueueName
from tidework.model.job import JobState


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
    counters: dict[str, int] = Field(description="Sums of transitions since the queue exists.")


def queue_model(queue: QueueName, found: QueueStats) -> QueueModel:
    """The model of one queue."""
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
        counters=dict(found.counters),
    )
