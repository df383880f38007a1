"""What is asked for: a new job, a copy of one; and what is answered to an act."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from tidework.access.redaction import MASK, is_masked
from tidework.errors import EnvelopeError
from tidework.model.identity import new_job_id
from tidework.model.job import DEFAULT_PRIORITY, Job, decode_job
from tidework.model.unique import OnConflict, Unique, UniqueUntil


class Answered(BaseModel):
    """What became of a job."""

    id: str
    answer: str


class EnqueuedModel(BaseModel):
    """inserted: false if a job that was there stands for it, whose id this is."""

    id: str
    inserted: bool


class UniqueOrder(BaseModel):
    """At most one job of the queue holds the key."""

    model_config = ConfigDict(extra="forbid")

    key: str = Field(min_length=1, max_length=200)
    until: UniqueUntil = UniqueUntil.END
    ttl_seconds: float | None = Field(default=None, gt=0)
    on_conflict: OnConflict = OnConflict.SKIP

    def value(self) -> Unique:
        """Raises EnvelopeError."""
        return Unique(self.key, self.until, self.ttl_seconds, self.on_conflict)


class EnqueueOrder(BaseModel):
    """A job to be put in; what is left out is as the task says."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"task": "send_mail", "params": {"to": "ann@example.com"}}],
        },
    )

    task: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.:/-]{0,199}$")
    params: dict[str, Any] = Field(default_factory=dict)
    id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$",
        description="The same id is enqueued once.",
    )
    priority: int = Field(default=DEFAULT_PRIORITY, ge=0, le=9)
    delay_seconds: float | None = Field(default=None, ge=0)
    available_at: AwareDatetime | None = None
    max_attempts: int | None = Field(default=None, ge=1)
    timeout_seconds: float | None = Field(default=None, gt=0)
    unique: UniqueOrder | None = None


class RetryOrder(BaseModel):
    """params: instead of those of the old job; null = the same"""

    model_config = ConfigDict(extra="forbid")

    params: dict[str, Any] | None = None


def job_of_order(order: EnqueueOrder, key_id: str | None, now: datetime) -> Job:
    """The job. key_id: its id, of an idempotency key. Raises EnvelopeError."""
    if order.id is not None and key_id is not None:
        raise EnvelopeError(
            "an id enqueues once as it is; leave it or the header Idempotency-Key out", field="id"
        )
    if order.delay_seconds is not None and order.available_at is not None:
        raise EnvelopeError("give delay_seconds or available_at, not both", field="available_at")
    refuse_masked(order.params)
    return _checked(
        Job(
            id=order.id or key_id or new_job_id(),
            task=order.task,
            params=order.params,
            priority=order.priority,
            created_at=round(now.timestamp(), 3),
            available_at=None if order.available_at is None else order.available_at.timestamp(),
            max_attempts=order.max_attempts,
            timeout=order.timeout_seconds,
            unique=None if order.unique is None else order.unique.value(),
            delay=order.delay_seconds,
        )
    )


def retried(before: Job, order: RetryOrder, key_id: str | None, now: datetime) -> Job:
    """A copy of a job under an id of its own. Raises EnvelopeError."""
    if order.params is not None:
        refuse_masked(order.params)
    return _checked(
        before._replace(
            id=key_id or new_job_id(),
            params=before.params if order.params is None else order.params,
            created_at=round(now.timestamp(), 3),
            available_at=None,
            extra={**before.extra, "retry_of": before.id},
        )
    )


def refuse_masked(params: dict[str, Any]) -> None:
    """Raises EnvelopeError for a value that an answer has masked."""
    if is_masked(params):
        raise EnvelopeError(
            f"a value is {MASK!r}: it comes from an answer that does not show it; give the value "
            "itself",
            field="params",
        )


def _checked(job: Job) -> Job:
    decode_job(job.encode(), new_id=job.id, now=job.created_at)
    return job
