"""What the memory model keeps of one job and of one CronTask."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tidework.broker.history import MOST_LINES, line_of, with_history
from tidework.broker.progress_text import with_progress
from tidework.clock import from_ms
from tidework.model.backlog import JobRecord
from tidework.model.fire import Verdict
from tidework.model.job import FINISHED_STATES, JobState
from tidework.model.outcome import JobError
from tidework.model.unique import Unique
from tidework.model.values.kept_result import KeptResult, kept_result

HELD = 9 * 10**15


@dataclass(slots=True)
class Entry:
    """A job as the queue keeps it. ``available_ms`` is its due time.

    held: until the run that it replaces has ended, the CronTask's or ``replaces``
    raw:  a document that did not validate
    span_ms: since when it waits for a span of time, 0: it does not, or until an instant
    progress: see progress_text.py
    unknown_until_ms: how long it waits for a worker that knows its task; 0 = it does not
    """

    id: str
    task: str
    body: bytes
    priority: int
    available_ms: int
    state: JobState
    changed_ms: int = 0
    cron: str = ""
    held: bool = False
    unique: Unique | None = None
    replaces: str = ""
    raw: bool = False
    attempt: int = 0
    deliveries: int = 0
    losses: int = 0
    releases: int = 0
    cancel: bool = False
    started_ms: int = 0
    lease_ms: int = 0
    span_ms: int = 0
    token: str = ""
    detail: bytes = b""
    progress: bytes = b""
    unknown_until_ms: int = 0
    history: list[str] = field(default_factory=list)

    def note_end(self, letter: str, ended_ms: int, cause: str) -> None:
        """A delivery ended, not in success."""
        line = line_of(letter, self.attempt, self.started_ms, ended_ms, self.worker, cause)
        self.history = [*self.history, line][-MOST_LINES:]

    @property
    def error(self) -> JobError | None:
        """What the last failed attempt raised."""
        ended_well = self.state is JobState.SUCCEEDED
        return JobError.decode(self.detail) if self.detail and not ended_well else None

    @property
    def place(self) -> tuple[int, str]:
        """Where it stands among the jobs of its state."""
        if self.state is JobState.READY:
            return self.priority * 10**13 + self.available_ms, self.id
        if self.state is JobState.SCHEDULED:
            return HELD if self.held else self.available_ms * 10 + self.priority, self.id
        return self.lease_ms if self.state is JobState.RUNNING else self.changed_ms, self.id

    @property
    def worker(self) -> str:
        """The incarnation that holds the lease, or held it to a success."""
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


def read_record(entry: Entry) -> JobRecord:
    """The read-out of a job."""
    ended_well = entry.state is JobState.SUCCEEDED
    kept = kept_result(entry.detail) if ended_well else KeptResult()
    record = JobRecord(
        id=entry.id,
        task=entry.task,
        state=entry.state,
        body=entry.body,
        priority=entry.priority,
        attempt=entry.attempt,
        deliveries=entry.deliveries,
        losses=entry.losses,
        releases=entry.releases,
        cancel_requested=entry.cancel and entry.state not in FINISHED_STATES,
        available_at=None if entry.held else from_ms(entry.available_ms),
        changed_at=from_ms(entry.changed_ms) if entry.changed_ms else None,
        started_at=from_ms(entry.started_ms) if entry.started_ms else None,
        worker=entry.worker,
        cron=entry.cron,
        unique=entry.unique.key if entry.unique else "",
        result=kept.data,
        error=entry.error,
        result_json=kept.raw,
        result_refusal=kept.refusal,
    )
    return with_progress(with_history(record, "\n".join(entry.history)), entry.progress)
