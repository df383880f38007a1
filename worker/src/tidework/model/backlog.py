"""Read-outs: what a queue, a job or a worker looks like at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tidework.model.job import JobState
from tidework.model.outcome import JobError


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """What the autoscaler gathers from one queue in one script.

    backlog:      inbox + intake + ready + due jobs
    due_soon:     scheduled jobs that become due within the horizon asked for
    in_flight:    claimed jobs
    busy_workers: incarnations that hold at least one lease
    oldest_age:   seconds that the oldest ready or due job has waited, 0 without one
    next_due:     Unix ms of the earliest scheduled job, None without one
    enqueued:     counter of jobs ever enqueued (the arrival rate is its slope)
    service_time: task -> moving average of its seconds
    """

    backlog: int
    due_soon: int
    in_flight: int
    busy_workers: Mapping[str, int]
    oldest_age: float
    next_due: int | None
    enqueued: int
    service_time: Mapping[str, float]
    now_ms: int


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Lengths by state and counters since the queue exists (sums of transitions)."""

    states: Mapping[JobState, int]
    inbox: int
    oldest_age: float
    counters: Mapping[str, int]

    @property
    def backlog(self) -> int:
        """Jobs that could run now and do not, unvalidated documents included."""
        return self.states[JobState.READY] + self.inbox

    @property
    def unfinished(self) -> int:
        """Jobs that have not ended, unvalidated documents included."""
        waiting = self.states[JobState.READY] + self.states[JobState.SCHEDULED]
        return waiting + self.states[JobState.RUNNING] + self.inbox


@dataclass(frozen=True, slots=True)
class JobRecord:
    """Everything known of one job.

    body:    the envelope as enqueued (raw bytes of a document that did not validate)
    worker:  incarnation that runs it, '' when none does
    result:  JSON value of a succeeded job (None also if nothing was kept)
    error:   of the last failed attempt or loss
    """

    id: str
    state: JobState
    body: bytes
    priority: int
    attempt: int
    deliveries: int
    losses: int
    releases: int
    cancel_requested: bool
    available_at: datetime | None
    changed_at: datetime | None
    started_at: datetime | None
    worker: str
    cron: str
    result: Any
    error: JobError | None


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs of one state, in order; ``cursor`` continues the list, None at its end."""

    ids: tuple[str, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Presence:
    """What a worker says of itself every 10 s; ``document`` is JSON data."""

    incarnation: str
    seen_at: datetime
    document: Mapping[str, Any] = field(default_factory=dict)
