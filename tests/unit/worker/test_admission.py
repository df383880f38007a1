"""What becomes of a claimed job before a child sees it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from tidework.model.lease import ClaimedJob
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.model.retry import RetryPolicy
from tidework.model.task import TaskSpec
from tidework.worker.admission import Admission, admit

NOW = 1_000_000.0
GRACE = timedelta(seconds=60)
SPECS = {
    "plain": TaskSpec("plain", "q", RetryPolicy(max_attempts=4)),
    "quick": TaskSpec("quick", "q", RetryPolicy(max_attempts=2), timeout=timedelta(seconds=30)),
}


def claimed(releases: int = 0, body: bytes | None = None, **envelope: Any) -> ClaimedJob:
    raw = json.dumps({"v": 1, "id": "j", "params": {}, "created_at": NOW, **envelope}).encode()
    return ClaimedJob("j", "token", 1, 1, 0, releases, raw if body is None else body)


def judge(job: ClaimedJob) -> Admission | Outcome:
    return admit(job, SPECS, hard_timeout=600, unknown_grace=GRACE.total_seconds())


def outcome(job: ClaimedJob) -> Outcome:
    found = judge(job)
    assert isinstance(found, Outcome)
    return found


@pytest.mark.parametrize(
    ("envelope", "timeout", "attempts"),
    [
        ({"task": "plain"}, 600, 4),
        ({"task": "plain", "timeout": 5, "max_attempts": 1}, 5, 1),
        ({"task": "plain", "timeout": 6000}, 600, 4),
        ({"task": "quick"}, 30, 2),
        ({"task": "quick", "timeout": 5}, 5, 2),
        ({"task": "quick", "timeout": 50, "max_attempts": 9}, 30, 9),
        ({"task": "quick", "timeout": None, "max_attempts": None}, 30, 2),
    ],
)
def test_the_smallest_timeout_and_the_nearest_attempts_count(
    envelope: dict[str, Any], timeout: float, attempts: int
) -> None:
    found = judge(claimed(**envelope))

    assert found == Admission(SPECS[envelope["task"]], timeout, attempts)


@pytest.mark.parametrize(
    ("releases", "delay"), [(0, 1), (1, 2), (3, 8), (5, 32), (6, 60), (20, 60), (5000, 60)]
)
def test_an_unknown_task_waits_longer_each_time(releases: int, delay: int) -> None:
    found = outcome(claimed(releases, task="missing"))

    reason = "unknown task 'missing'; this application has: plain, quick"
    assert found == Outcome.release_unknown(timedelta(seconds=delay), GRACE, reason)


@pytest.mark.parametrize(("task", "meant"), [("plian", "plain"), ("Quick", "quick"), ("x", None)])
def test_a_task_with_a_typo_is_told_with_the_name_that_was_meant(
    task: str, meant: str | None
) -> None:
    reason = outcome(claimed(task=task)).cause

    assert f"unknown task {task!r}" in reason
    assert (f"did you mean {meant!r}?" in reason) is (meant is not None)
    assert ("did you mean" in reason) is (meant is not None)


@pytest.mark.parametrize("created_at", [0, NOW - 86_400, NOW + 86_400, 1e11])
def test_the_clock_of_the_producer_takes_nothing_from_the_grace(created_at: float) -> None:
    found = outcome(claimed(task="missing", created_at=created_at, available_at=created_at))

    assert found.unknown_for == GRACE


def test_a_newer_envelope_is_left_to_a_newer_worker() -> None:
    found = outcome(claimed(task="plain", v=2))

    assert found.unknown_for == GRACE
    assert "version 2" in found.cause


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"{}", b'"task"', b"\xff\xfe"])
def test_an_unreadable_envelope_is_buried(body: bytes) -> None:
    found = outcome(claimed(body=body))

    assert found.kind is OutcomeKind.BURY
    assert JobError.decode(found.detail).cause == "invalid"


@pytest.mark.parametrize("task", [None, 7, ["plain"], {}])
def test_a_task_that_is_no_name_is_unknown(task: object) -> None:
    assert outcome(claimed(task=task)).kind is OutcomeKind.RELEASE


def test_a_job_that_was_given_back_beyond_the_cap_ends_with_its_attempts() -> None:
    body = json.dumps({"task": "plain", "created_at": NOW, "max_attempts": 2}).encode()

    assert isinstance(judge(ClaimedJob("j", "token", 2, 30, 0, 21, body)), Admission)
    found = outcome(ClaimedJob("j", "token", 3, 30, 0, 22, body))

    assert found.kind is OutcomeKind.BURY
    error = JobError.decode(found.detail)
    assert error.cause == "released"
    assert error.message == "released 22 times, and all 2 attempts are used up"


def test_a_task_that_would_block_the_event_loop_is_buried_with_the_remedy() -> None:
    job = claimed(task="plain")

    found = admit(job, SPECS, hard_timeout=600, unknown_grace=60, loop_tasks={"quick"})

    assert isinstance(found, Outcome)
    assert found.kind is OutcomeKind.BURY
    error = JobError.decode(found.detail)
    assert (error.type, error.cause) == ("NeedsSlots", "needs_slots")
    assert "(plain); make it an 'async def'" in error.message
    fits = admit(
        claimed(task="quick"), SPECS, hard_timeout=600, unknown_grace=60, loop_tasks={"quick"}
    )
    assert isinstance(fits, Admission)
