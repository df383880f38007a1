"""Read-outs: what a queue, a job or a worker looks like at one moment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Flag, StrEnum
from typing import Any

from tidework.errors import ConfigurationError
from tidework.model.job import FINISHED_STATES, JobState
from tidework.model.outcome import JobError
from tidework.model.progress import Key, Progress


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
    paused:       nothing is claimed until somebody resumes the queue
    unknown:      jobs whose task no worker knew, until their wait for one that does is over: in
                  neither ``backlog`` nor ``due_soon``; ``unknown_task``: the task of one of them
    announced:    version of the application that a worker announced last, '' without one
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
    paused: bool = False
    unknown: int = 0
    unknown_task: str = ""
    announced: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """Since when a queue is paused, and why, as somebody said."""

    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Lengths by state and counters since the queue exists (sums of transitions)."""

    states: Mapping[JobState, int]
    inbox: int
    oldest_age: float
    counters: Mapping[str, int]
    pause: Pause | None = None

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
    task:    '' for a document that did not validate
    unique:  its unique key, '' without one
    worker:  incarnation that runs it, or ran it with success; '' when none does
    changed_at: of its state's last change, None if it has waited since its enqueue
    result:  JSON value of a succeeded job (None also if it has none); result_json: as it is stored;
             result_refusal: why a succeeded job is without the result that it returned, or ''
    error:   of the last failed attempt or loss
    history: its deliveries, oldest first; of very many the newest
    progress: what it said last, of this delivery or the one before, None if nothing; checkpoints:
             name -> key of the last finished item. Both until it succeeds or is cancelled
    """

    id: str
    task: str
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
    unique: str
    result: Any
    error: JobError | None
    history: tuple[Delivery, ...] = ()
    progress: Progress | None = None
    checkpoints: Mapping[str, Key] = field(default_factory=dict)
    result_json: bytes = b""
    result_refusal: str = ""


@dataclass(frozen=True, slots=True)
class FoundJob:
    """One of many jobs. ``record.body`` has SHOWN_BYTES at most; is_cut: there is more of it"""

    record: JobRecord
    is_cut: bool


SHOWN_BYTES = 4096
"""So much of a job's envelope is read where many are looked at."""


class DeliveryEnd(StrEnum):
    """What became of a delivery."""

    RUNNING = "running"
    COMPLETE = "complete"
    RETRY = "retry"
    RELEASE = "release"
    LOSS = "loss"
    EXPIRED = "expired"
    BURY = "bury"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One claim of a job. ``ended_at`` is None while it runs; ``cause`` is one line of text."""

    attempt: int
    end: DeliveryEnd
    claimed_at: datetime
    ended_at: datetime | None
    worker: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs of a state are listed.

    task:         ended jobs only: those that wait are not indexed by task
    error:        fingerprint; dead letters only
    since, until: bounds, both included, of the end of ended jobs or the due time of scheduled ones
                  (a job that waits for another to end is due after all)
    """

    task: str = ""
    error: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def check(self, state: JobState, cursor: str | None = None) -> None:
        """Raises ConfigurationError for a filter that ``state`` does not serve, or a bad cursor."""
        if cursor is not None and not _CURSOR.fullmatch(cursor):
            raise ConfigurationError(
                f"cursor {cursor!r} is not one of a page of jobs; take it from the page before"
            )
        if self.task and self.error:
            raise ConfigurationError(
                "a list is filtered by task or by error, not by both: an error has one task mostly"
            )
        if self.task and state not in FINISHED_STATES:
            raise ConfigurationError(
                f"{state.value} jobs are not indexed by task; list them without it, or give the "
                "task a queue of its own"
            )
        if self.error and state is not JobState.DEAD:
            raise ConfigurationError("only dead letters are listed by error")
        timed = state in FINISHED_STATES or state is JobState.SCHEDULED
        if (self.since or self.until) and not timed:
            raise ConfigurationError(
                f"{state.value} jobs are not listed by time; ended and scheduled ones are"
            )


EVERY_JOB = JobFilter()
_CURSOR = re.compile(r"\d{1,16}:[A-Za-z0-9_.:-]{1,128}")


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Dead letters of one fingerprint: their number, first and last end; ``example`` is the id of
    the newest, whose error is ``error``."""

    fingerprint: str
    count: int
    first_at: datetime
    last_at: datetime
    example: str
    error: JobError | None


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs of one state, in order; ``cursor`` continues the list, None at its end."""

    ids: tuple[str, ...]
    cursor: str | None


STALE_AFTER = timedelta(seconds=30)
"""A worker that was not seen for so long is dead, frozen or cut off; it beats every 10 s."""


class Cordon(Flag):
    """Who keeps a worker from claiming."""

    NOBODY = 0
    AUTOSCALER = 1
    PERSON = 2


@dataclass(frozen=True, slots=True)
class Presence:
    """What a worker says of itself every 10 s; ``document`` is JSON data.

    seen_at, silent_for: its last beat or exchange, and how long ago that was, by Redis' clock
    """

    incarnation: str
    seen_at: datetime
    document: Mapping[str, Any] = field(default_factory=dict)
    silent_for: timedelta = timedelta(0)
    cordon: Cordon = Cordon.NOBODY

    @property
    def is_stale(self) -> bool:
        """Was it not seen for so long that something is wrong with it?"""
        return self.silent_for >= STALE_AFTER


@dataclass(frozen=True, slots=True)
class StacksAnswer:
    """Stacks of a worker's processes, asked for from outside; ``document`` is JSON data.

    number: of the request that it answers, those before among them
    """

    number: int
    document: Mapping[str, Any]
