"""What the history of a CronTask adds up to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean

from tidework.model.fire import Fire, Verdict
from tidework.model.job import JobState


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Of the runs in the history.

    succeeded, dead, cancelled: how many ended so; unfinished: without an outcome so far
    skipped:      fires that came to no job, by verdict
    success_rate: of those that succeeded or are dead letters, None without any: who cancels a run
                  does not say that it would have failed
    mean_duration, longest: of the last attempt of each run that ended, None without any
    """

    succeeded: int
    dead: int
    cancelled: int
    unfinished: int
    skipped: int
    success_rate: float | None
    mean_duration: timedelta | None
    longest: timedelta | None

    def in_words(self) -> str:
        """One line."""
        rate = "no run has ended" if self.success_rate is None else f"{self.success_rate:.0%}"
        parts = [f"success rate {rate}" if self.success_rate is not None else rate]
        counts = {
            "succeeded": self.succeeded,
            "dead": self.dead,
            "cancelled": self.cancelled,
            "unfinished": self.unfinished,
            "without a job": self.skipped,
        }
        parts += [f"{count} {what}" for what, count in counts.items() if count]
        if self.mean_duration is not None and self.longest is not None:
            mean, longest = (at.total_seconds() for at in (self.mean_duration, self.longest))
            parts.append(f"mean {mean:.3f} s, longest {longest:.3f} s")
        return ", ".join(parts)


def summary_of_runs(fires: Sequence[Fire]) -> RunSummary:
    """Count what is in the history."""
    ran = [fire for fire in fires if fire.verdict is Verdict.ENQUEUED]
    outcomes = [fire.outcome for fire in ran]
    succeeded, dead = outcomes.count(JobState.SUCCEEDED), outcomes.count(JobState.DEAD)
    durations = [fire.duration.total_seconds() for fire in ran if fire.duration is not None]
    return RunSummary(
        succeeded=succeeded,
        dead=dead,
        cancelled=outcomes.count(JobState.CANCELLED),
        unfinished=outcomes.count(None),
        skipped=sum(fire.count for fire in fires if fire.verdict is not Verdict.ENQUEUED),
        success_rate=succeeded / (succeeded + dead) if succeeded + dead else None,
        mean_duration=timedelta(seconds=fmean(durations)) if durations else None,
        longest=timedelta(seconds=max(durations)) if durations else None,
    )
