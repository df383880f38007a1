"""Fires of a CronTask: the request to decide one, and its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tidework.model.job import Job


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
class CronRecord:
    """The queue's record of one CronTask.

    watermark: last decided second; verdicts: counts; active: ids of unfinished runs;
    last_job: id of the last enqueued run; last_fire: its scheduled second
    by_hand: number of runs that people asked for, which are no fires
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


def fire_id(uid: str, fire: int) -> str:
    """The id of a fire's job: uid and scheduled second."""
    return f"{uid}-{fire}"
