"""Fires of a CronTask: the request to decide one, its verdict, and what became of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tidework.model.job import Job, JobState


class ConcurrencyPolicy(StrEnum):
    """As in Kubernetes' CronJob; a run counts from its enqueue to its last attempt's end."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"


class Verdict(StrEnum):
    """What became of a fire. Exactly one per due instant."""

    ENQUEUED = "enqueued"
    SKIPPED_OVERLAP = "skipped_overlap"
    MISSED_DEADLINE = "missed_deadline"
    MISSED_CATCH_UP = "missed_catch_up"


class FireAnswer(StrEnum):
    """Why decide_fire wrote no verdict."""

    STALE_FIRE = "stale_fire"  # at or below the watermark
    CHANGED = "changed"  # the record is of another schedule: admit again
    EXHAUSTED = "exhausted"  # maxRuns reached
    SUSPENDED = "suspended"  # by a person; the watermark passes it


class BackfillAnswer(StrEnum):
    """What became of a past instant that a person asks for."""

    ENQUEUED = "enqueued"
    KNOWN = "known"  # it ran, or was asked for before
    UNDECIDED = "undecided"  # behind the watermark: the leader decides it
    BUSY = "busy"  # a run goes on, and the concurrencyPolicy wants one at a time


@dataclass(frozen=True, slots=True)
class FireRequest:
    """One due instant.

    uid:      of the CronTask; fire: scheduled second, Unix time
    wanted:   ENQUEUED, or the MISSED verdict that the scheduler came to
    job:      what to enqueue (id = uid-fire); None for a missed fire
    """

    uid: str
    fingerprint: str
    fire: int
    wanted: Verdict
    policy: ConcurrencyPolicy = ConcurrencyPolicy.ALLOW
    max_runs: int | None = None
    job: Job | None = None


@dataclass(frozen=True, slots=True)
class Suspension:
    """A person has a CronTask suspended, whatever its document says.

    until: when it ends by itself; None: not before somebody resumes it
    """

    by: str
    reason: str
    since: datetime
    until: datetime | None = None

    def holds(self, now: datetime) -> bool:
        """Is it not over?"""
        return self.until is None or now < self.until


@dataclass(frozen=True, slots=True)
class CronRecord:
    """The queue's record of one CronTask.

    watermark: last decided second; verdicts: counts; active: ids of unfinished runs;
    last_job: id of the last enqueued run; last_fire: its scheduled second
    by_hand: number of runs that people asked for, which are no fires
    suspension: by a person; it may be over
    """

    uid: str
    fingerprint: str
    watermark: int
    verdicts: Mapping[Verdict, int]
    active: tuple[str, ...]
    held: str
    last_fire: int | None
    last_job: str
    last_run_now: str
    by_hand: int = 0
    suspension: Suspension | None = None


class FireKind(StrEnum):
    """Why a run came to be."""

    SCHEDULE = "schedule"
    BY_HAND = "by_hand"
    BACKFILL = "backfill"


@dataclass(frozen=True, slots=True)
class Fire:
    """One entry of the history of a CronTask: a run, or fires that came to no job.

    due:        the fire time; of a run by hand when it was asked for
    decided_at: when the verdict was written, by Redis' clock
    job_id:     '' for what came to no job
    count:      how many neighbouring fires of one verdict this stands for, from ``first_due`` on
    outcome:    state in which the run ended, None before; what follows is known from then on
    claimed_at: first claim; started_at: start of the attempt that was under way at the end
    attempts:   that were counted
    note:       who asked for it and why
    """

    kind: FireKind
    verdict: Verdict
    due: datetime
    decided_at: datetime
    job_id: str
    count: int
    first_due: datetime
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: JobState | None = None
    attempts: int = 0
    note: str = ""

    @property
    def lateness(self) -> timedelta:
        """From the fire time to the verdict; clocks that differ can make it negative."""
        return self.decided_at - self.due

    @property
    def start_delay(self) -> timedelta | None:
        """From the fire time to the first claim; None if that is not known, or never was."""
        return None if self.claimed_at is None else self.claimed_at - self.due

    @property
    def duration(self) -> timedelta | None:
        """Of the attempt that was under way at the end; None before the end, or without one."""
        if self.started_at is None or self.ended_at is None:
            return None
        return self.ended_at - self.started_at


def one_line(text: str, limit: int = 300) -> str:
    """A remark of a person as the record keeps it: one line, not longer than ``limit``."""
    words = " ".join(text.split())
    return words if len(words) <= limit else words[: limit - 3] + "..."


def fire_id(uid: str, fire: int) -> str:
    """The id of a fire's job: uid and scheduled second."""
    return f"{uid}-{fire}"
