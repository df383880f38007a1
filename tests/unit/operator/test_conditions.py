"""Conditions: transition times move with the status alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tidework_operator.conditions import Condition, find_condition, merge_conditions

NOW = datetime(2026, 1, 5, 10, 0, 0, 700_000, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)


def test_a_new_condition_is_whole() -> None:
    merged = merge_conditions(
        [], [Condition("Ready", True, "Served", "all is well")], generation=3, now=NOW
    )

    assert merged == [
        {
            "type": "Ready",
            "status": "True",
            "observedGeneration": 3,
            "lastTransitionTime": "2026-01-05T10:00:00Z",
            "reason": "Served",
            "message": "all is well",
        }
    ]


def test_another_reason_of_the_same_status_is_no_transition() -> None:
    before = merge_conditions([], [Condition("Ready", False, "NoImage")], generation=1, now=NOW)

    merged = merge_conditions(
        before, [Condition("Ready", False, "CrashLoop", "see the log")], generation=2, now=LATER
    )

    assert merged[0]["lastTransitionTime"] == "2026-01-05T10:00:00Z"
    assert (merged[0]["reason"], merged[0]["observedGeneration"]) == ("CrashLoop", 2)


@pytest.mark.parametrize(("status", "text"), [(True, "True"), (None, "Unknown")])
def test_another_status_is_a_transition(status: bool | None, text: str) -> None:
    before = merge_conditions([], [Condition("Ready", False, "NoImage")], generation=1, now=NOW)

    merged = merge_conditions(
        before, [Condition("Ready", status, "Served")], generation=1, now=LATER
    )

    assert (merged[0]["status"], merged[0]["lastTransitionTime"]) == (text, "2026-01-05T10:05:00Z")


def test_what_is_not_wanted_any_more_goes_and_the_order_is_that_of_wanted() -> None:
    a, b, c = (Condition(name, True, "Fine") for name in "ABC")
    before = merge_conditions([], [a, b], generation=1, now=NOW)

    merged = merge_conditions(before, [c, a], generation=1, now=LATER)

    assert [found["type"] for found in merged] == ["C", "A"]


def test_the_same_again_changes_nothing() -> None:
    wanted = [Condition("A", True, "Fine"), Condition("B", None, "Starting", "soon")]
    before = merge_conditions([], wanted, generation=1, now=NOW)

    assert merge_conditions(before, wanted, generation=1, now=LATER) == before


def test_a_message_beyond_the_bound_of_the_api_server_is_cut() -> None:
    merged = merge_conditions(
        [], [Condition("A", True, "Fine", "x" * 40_000)], generation=1, now=NOW
    )

    assert len(merged[0]["message"]) == 32_768


def test_a_reason_that_the_api_server_would_refuse_is_refused_here() -> None:
    with pytest.raises(ValueError, match="condition Ready: reason 'no image'"):
        Condition("Ready", False, "no image")


def test_finding_a_condition() -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}

    assert find_condition(status, "Ready") == {"type": "Ready", "status": "True"}
    assert find_condition(status, "Other") is None
    assert find_condition(None, "Ready") is None
