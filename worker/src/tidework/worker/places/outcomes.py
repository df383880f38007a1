"""Outcomes: what becomes of a job that was stopped, or whose child was killed or died. Pure."""

from __future__ import annotations

from datetime import timedelta
from random import random

from tidework.model.outcome import JobError, Outcome
from tidework.worker.held import HeldJob, StopReason

ROOM_PAUSE, LONGEST_ROOM_PAUSE = 10.0, 60.0
"""Seconds until a job runs again that had to make room, doubled each time: what needed the room
may have ended by then."""

LEFT = Outcome.release(reason="the worker leaves")
"""Of a job that a worker releases because it ends itself."""


def outcome_of_dead(
    job: HeldJob, killed_for: tuple[StopReason, HeldJob | None] | None, end: str
) -> Outcome | None:
    """What became of ``job``, which had started or was told to end, and whose child died. None:
    nothing is to be settled.

    killed_for: why the supervisor killed the child, and for which job; None: it died by itself
    end:        of the process, in words, or why it was killed
    """
    kind, about = killed_for or (StopReason.BROKEN, None)
    if job.stop_reason is not None:
        how = f"it went on for {job.patience:.3g} s after it was told, and was killed"
        if job.started_at is None:
            how = "it had not begun"
        elif about is not job:
            how = f"its process ended: {end}"
        return outcome_of_stopped(job, job.stop_reason, how)
    if kind is StopReason.BLOCKED:
        reason = (
            "the event loop that this job shared with others was blocked, by one of them, until "
            "its process was killed; it runs alone next"
        )
        return Outcome.loss(JobError("LoopBlocked", reason, cause="blocked"))
    if kind is StopReason.MEMORY:
        reason = f"the child process was ended for its memory while it ran this job: {end}"
        return Outcome.loss(JobError("MemoryExceeded", reason, cause="memory"))
    if kind is StopReason.ROOM:
        reason = f"memory: its process had to make room for one that grew: {end}"
        pause = min(ROOM_PAUSE * 2 ** min(job.claimed.releases, 10), LONGEST_ROOM_PAUSE)
        return Outcome.release(timedelta(seconds=pause), reason)
    if kind is StopReason.BROKEN:
        reason = f"the child process died while it ran this job: {end}"
        return Outcome.loss(JobError("WorkerLost", reason, cause=end))
    if about is not job and kind is not StopReason.WORKER_LEAVES:
        # It ran beside it, or had only just begun when its child was killed for the one before.
        return Outcome.release(reason=f"its process was ended for another job: {kind}")
    return outcome_of_stopped(job, kind)


def outcome_of_stopped(job: HeldJob, stop_reason: StopReason, how: str = "") -> Outcome | None:
    """What becomes of a job that was stopped itself. None: nothing is to be settled.

    how: a cancelled one ended, in words
    """
    match stop_reason:
        case StopReason.TIMEOUT:
            reason = f"stopped at the hard timeout of {job.timeout:g} s"
            error = JobError("Timeout", reason, cause="timeout")
            attempt = job.claimed.attempt
            return job.spec.retry.after_failure(error, attempt, job.max_attempts, random)
        case StopReason.CANCELLED:
            return Outcome.cancelled(how)
        case StopReason.LEASE_LOST:
            return None
    return LEFT
