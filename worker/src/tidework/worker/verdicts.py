"""Verdicts: why the supervisor kills a child, and what becomes of the job that ran in it. Pure."""

from __future__ import annotations

from enum import StrEnum
from random import random

from tidework.model.outcome import JobError, Outcome
from tidework.worker.held import HeldJob


class Verdict(StrEnum):
    """Why a child is killed. BROKEN: it speaks no frames, or closed its pipe."""

    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    LEASE_LOST = "lease_lost"
    HANDED_BACK = "handed_back"
    BROKEN = "broken"


def outcome_of_dead(
    job: HeldJob, verdict: tuple[Verdict, HeldJob | None] | None, end: str
) -> Outcome | None:
    """What became of the started ``job`` whose child died. None: nothing is to be settled.

    verdict: and the job it was about, if the supervisor killed the child
    end:     of the process, in words
    """
    if verdict is None or verdict[0] is Verdict.BROKEN:
        reason = f"the child process died while it ran this job: {end}"
        return Outcome.loss(JobError("WorkerLost", reason, cause=end))
    kind, about = verdict
    if about is not job or kind is Verdict.HANDED_BACK:
        # It had only just begun when its predecessor's verdict struck, or the worker leaves.
        return Outcome.release()
    if kind is Verdict.TIMEOUT:
        reason = f"killed at the hard timeout of {job.timeout:g} s"
        error = JobError("Timeout", reason, cause="timeout")
        return job.spec.retry.after_failure(error, job.claimed.attempt, job.max_attempts, random)
    return Outcome.cancelled() if kind is Verdict.CANCELLED else None
