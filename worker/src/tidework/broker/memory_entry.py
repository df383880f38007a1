"""What the memory model keeps of one job and of one CronTask."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from tidework.clock import from_ms
from tidework.model.backlog import JobRecord
from tidework.model.fire import Verdict
from tidework.model.job import FINISHED_STATES, JobState
from tidework.model.outcome import JobError


@dataclass(slots=True)
class Entry:
    """A job as the queue keeps it. ``available_ms`` is its due time; held: by Replace."""

    id: str
    body: bytes
    priority: int
    available_ms: int
    state: JobState
    changed_ms: int
    cron: str = ""
    held: bool = False
    attempt: int = 0
    deliveries: int = 0
    losses: int = 0
    releases: int = 0
    cancel: bool = False
    started_ms: int = 0
    lease_ms: int = 0
    token: str = ""
    detail: bytes = b""

    @property
    def worker(self) -> str:
        """The incarnation that holds the lease."""
        return self.token.rpartition(":")[0]


@dataclass(slots=True)
class Cron:
    """The record of one CronTask."""

    uid: str
    fingerprint: str
    watermark: int
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    last_decided: int | None = None
    last_verdict: Verdict | None = None
    last_fire: int | None = None
    last_job: str = ""
    last_run_now: str = ""


def read_record(entry: Entry) -> JobRecord:
    """The read-out of a job."""
    ended_well = entry.state is JobState.SUCCEEDED
    return JobRecord(
        id=entry.id,
        state=entry.state,
        body=entry.body,
        priority=entry.priority,
        attempt=entry.attempt,
        deliveries=entry.deliveries,
        losses=entry.losses,
        releases=entry.releases,
        cancel_requested=entry.cancel and entry.state not in FINISHED_STATES,
        available_at=None if entry.held else from_ms(entry.available_ms),
        changed_at=from_ms(entry.changed_ms),
        started_at=from_ms(entry.started_ms) if entry.started_ms else None,
        worker=entry.worker,
        cron=entry.cron,
        result=json.loads(entry.detail) if ended_well and entry.detail else None,
        error=JobError.decode(entry.detail) if entry.detail and not ended_well else None,
    )
