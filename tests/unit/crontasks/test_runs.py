"""What a history adds up to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidework.crontasks.runs import summary_of_runs
from tidework.model.fire import Fire, FireKind, Verdict
from tidework.model.job import JobState

AT = datetime(2026, 1, 5, 10, tzinfo=UTC)


def run(outcome: JobState | None, seconds: float | None = None) -> Fire:
    started = None if seconds is None else AT
    ended = None if outcome is None else AT + timedelta(seconds=seconds or 0)
    return Fire(
        FireKind.SCHEDULE, Verdict.ENQUEUED, AT, AT, "j", 1, AT, AT, started, ended, outcome, 1
    )


def test_nothing_ran() -> None:
    found = summary_of_runs([])
    assert (found.success_rate, found.mean_duration, found.longest) == (None, None, None)
    assert found.in_words() == "no run has ended"


def test_who_cancels_a_run_says_nothing_about_its_success() -> None:
    done, dead, gone = JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED
    skipped = Fire(FireKind.SCHEDULE, Verdict.SKIPPED_OVERLAP, AT, AT, "", 7, AT)
    fires = [run(None), run(done, 1), run(done, 2), run(done, 3), run(dead, 6), run(gone), skipped]

    found = summary_of_runs(fires)

    assert found.success_rate == 0.75
    assert (found.mean_duration, found.longest) == (timedelta(seconds=3), timedelta(seconds=6))
    assert found.in_words() == (
        "success rate 75%, 3 succeeded, 1 dead, 1 cancelled, 1 unfinished, 7 without a job, "
        "mean 3.000 s, longest 6.000 s"
    )
