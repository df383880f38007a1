"""A job: as a line of a list, and with everything that is known of it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from tidework.api.models.moments import Moment
from tidework.clock import from_ms
from tidework.errors import EnvelopeError
from tidework.model.backlog import Delivery, FoundJob, JobRecord
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState, decode_stored_job
from tidework.model.outcome import JobError

SHORT = 300
"""Characters of an error's message in a list, once it is redacted."""
_CREATED = re.compile(rb'"created_at":([0-9.e+]+)')


class ErrorModel(BaseModel):
    """The error of the last failed attempt."""

    type: str
    message: str
    cause: str
    fingerprint: str


class TracedErrorModel(ErrorModel):
    """... with its traceback, where there was one."""

    trace: str


class JobModel(BaseModel):
    """A job in a list."""

    id: str
    queue: str
    namespace: str
    task: str = Field(description="Empty for a document that did not validate.")
    state: JobState
    priority: int = Field(description="0 is first, 9 last.")
    attempt: int = Field(description="The attempt that runs or ran last; 0 before the first.")
    created_at: Moment | None
    available_at: Moment | None = Field(
        description="When it was or is due; null while it waits for another job to end."
    )
    started_at: Moment | None = Field(description="When it was claimed last.")
    changed_at: Moment | None = Field(description="When its state changed last.")
    worker: str | None = Field(description="The worker that runs it, or ran it with success.")
    cron: str | None = Field(description="The uid of the CronTask whose run it is.")
    unique: str | None = Field(description="Its unique key.")
    cancel_requested: bool
    params: Any = Field(description="Null in a list if they are longer than 4 KiB; see is_cut.")
    is_cut: bool = Field(description="The params are not shown here: look at the job alone.")
    redacted_fields: list[str] = Field(
        default_factory=list, description="Paths of values that nobody is shown."
    )
    error: ErrorModel | None


class DeliveryModel(BaseModel):
    """One time that a worker claimed the job."""

    attempt: int
    end: str
    claimed_at: Moment
    ended_at: Moment | None
    worker: str
    cause: str


class ProgressModel(BaseModel):
    """What the job said last of how far it is."""

    done: float | int
    total: float | int | None
    note: str
    at: Moment


class JobDetail(JobModel):
    """Everything known of a job."""

    max_attempts: int | None = Field(description="Null: as its task says.")
    timeout_seconds: float | None = Field(description="Null: as its task says.")
    retry_of: str | None = Field(description="The job of which it is an edited copy.")
    deliveries: int
    losses: int = Field(description="Times that its worker or process died.")
    releases: int = Field(description="Times that it was released, uncounted.")
    history: list[DeliveryModel] = Field(description="Its deliveries, oldest first.")
    progress: ProgressModel | None
    checkpoints: dict[str, Any]
    result: Any
    result_refusal: str | None = Field(description="Why its result was not kept.")
    error: TracedErrorModel | None
    document: str | None = Field(description="The text of a document that did not validate.")


def job_model(queue: QueueName, found: FoundJob) -> JobModel:
    """A line of a list."""
    record = found.record
    job = None if found.is_cut else _job_of(record)
    return JobModel(
        **_common(queue, record, job),
        params=None if job is None else dict(job.params),
        is_cut=found.is_cut,
        error=record.error and ErrorModel(**_fields(record.error)),
    )


def job_detail(queue: QueueName, record: JobRecord) -> JobDetail:
    """All of it."""
    job = _job_of(record)
    progress = record.progress
    retry_of = None if job is None else job.extra.get("retry_of")
    return JobDetail(
        **_common(queue, record, job),
        params=None if job is None else dict(job.params),
        is_cut=False,
        max_attempts=None if job is None else job.max_attempts,
        timeout_seconds=None if job is None else job.timeout,
        retry_of=retry_of if isinstance(retry_of, str) else None,
        deliveries=record.deliveries,
        losses=record.losses,
        releases=record.releases,
        history=[_delivery(each) for each in record.history],
        progress=progress
        and ProgressModel(
            done=progress.done, total=progress.total, note=progress.note, at=progress.at
        ),
        checkpoints=dict(record.checkpoints),
        result=record.result,
        result_refusal=record.result_refusal or None,
        error=record.error and TracedErrorModel(**_fields(record.error), trace=record.error.trace),
        document=None if job else record.body.decode(errors="backslashreplace"),
    )


def _common(queue: QueueName, record: JobRecord, job: Job | None) -> dict[str, Any]:
    return {
        "id": record.id,
        "queue": queue.name,
        "namespace": queue.namespace,
        "task": record.task,
        "state": record.state,
        "priority": record.priority,
        "attempt": record.attempt,
        "created_at": _created_at(record, job),
        "available_at": record.available_at,
        "started_at": record.started_at,
        "changed_at": record.changed_at,
        "worker": record.worker or None,
        "cron": record.cron or None,
        "unique": record.unique or None,
        "cancel_requested": record.cancel_requested,
    }


def _job_of(record: JobRecord) -> Job | None:
    """Its envelope; None for a document that did not validate."""
    if not record.task:
        return None
    try:
        return decode_stored_job(record.body)
    except EnvelopeError:
        return None


def _created_at(record: JobRecord, job: Job | None) -> datetime | None:
    """Of an envelope of which only the beginning is here as well: params stand behind it."""
    if job is not None:
        seconds = job.created_at
    else:
        found = _CREATED.search(record.body.partition(b'"params":')[0]) if record.task else None
        seconds = float(found[1]) if found else 0.0
    return from_ms(seconds * 1000) if seconds else None


def _fields(error: JobError) -> dict[str, str]:
    return {
        "type": error.type,
        "message": error.message,
        "cause": error.cause,
        "fingerprint": error.fingerprint,
    }


def _delivery(found: Delivery) -> DeliveryModel:
    return DeliveryModel(
        attempt=found.attempt,
        end=found.end.value,
        claimed_at=found.claimed_at,
        ended_at=found.ended_at,
        worker=found.worker,
        cause=found.cause,
    )
