"""What the scheduler knows of one CronTask: plain frozen data, whoever it came from.

A file or the cluster gives a CronTask document; the scheduler lives on CronSpecs alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tidework.errors import ConfigurationError, EnvelopeError
from tidework.model.fire import ConcurrencyPolicy, fire_id
from tidework.model.identity import QueueName, is_job_id
from tidework.model.job import DEFAULT_PRIORITY, Job
from tidework.model.schedules.schedule import fingerprint_of
from tidework.scheduler.due import FireRules, to_unix

RUN_NOW_ANNOTATION = "tidework.dev/run-now"


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSpec:
    """One CronTask. Two are equal if nothing differs that a fire depends on.

    created:        when the CronTask came to be; a record that was lost starts there
    last_scheduled: its last fire as far as another store remembers, None without one
    max_attempts, timeout: None = the task's own
    run_now:        nonce of the manual run that was asked for last, '' without one
    document:       JSON, mirrored into the queue for whoever leads next

    Raises ConfigurationError for a uid or params that no job could carry.
    """

    uid: str
    name: str
    queue: QueueName
    task: str
    rules: FireRules
    created: datetime = field(compare=False)
    last_scheduled: datetime | None = field(default=None, compare=False)
    params: Mapping[str, Any] = field(default_factory=dict)
    suspend: bool = False
    policy: ConcurrencyPolicy = ConcurrencyPolicy.ALLOW
    max_runs: int | None = None
    priority: int = DEFAULT_PRIORITY
    max_attempts: int | None = None
    timeout: timedelta | None = None
    run_now: str = ""
    document: bytes = field(default=b"{}", compare=False)

    def __post_init__(self) -> None:
        try:
            if not is_job_id(fire_id(self.uid, 253_402_300_799)):
                raise EnvelopeError(
                    f"{self.uid!r} has to be at most 110 characters of A-Z a-z 0-9 _ . : -",
                    field="uid",
                )
            manual_job(self, "check", self.created).encode()
        except EnvelopeError as error:
            raise ConfigurationError(
                f"CronTask {self.queue.namespace}/{self.name}: {error}"
            ) from error

    @property
    def fingerprint(self) -> str:
        """Changes with whatever moves, stops or resumes the fires: then nothing earlier fires.

        It is kept with the record in the queue, so that a leader that never saw a CronTask
        suspended knows that it was.
        """
        limits = ("suspended" if self.suspend else "", str(self.max_runs or ""))
        return fingerprint_of(self.rules.fingerprint, *limits)


def fire_job(spec: CronSpec, fire: datetime, now: datetime, *, late: bool) -> Job:
    """The job of a fire. Its wait counts from the fire time, or from now for one made up for."""
    job = _job(spec, fire_id(spec.uid, to_unix(fire)), now, now if late else min(fire, now))
    # It is due now, whatever Redis' clock shows: what it has waited is a span.
    return job._replace(delay=min(0.0, (job.available_at or 0.0) - job.created_at))


def manual_job(spec: CronSpec, nonce: str, now: datetime) -> Job:
    """The job of a manual run: one nonce, one job."""
    return _job(spec, f"{spec.uid}-run-{fingerprint_of(nonce)}", now, now)


def _job(spec: CronSpec, job_id: str, created: datetime, available: datetime) -> Job:
    return Job(
        id=job_id,
        task=spec.task,
        params=spec.params,
        priority=spec.priority,
        created_at=created.timestamp(),
        available_at=available.timestamp(),
        max_attempts=spec.max_attempts,
        timeout=None if spec.timeout is None else spec.timeout.total_seconds(),
    )
