"""The policies, against figures worked out by the HPA controller's own arithmetic."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support.scaling_cases import scaling
from tidework.manifests import ScaleDown, ScaleUp
from tidework.scaling.history import Change, History
from tidework.scaling.rate import highest, lowest

PODS_4 = {"type": "Pods", "value": 4, "periodSeconds": 60}
PERCENT_50 = {"type": "Percent", "value": 50, "periodSeconds": 60}
PERCENT_10 = {"type": "Percent", "value": 10, "periodSeconds": 60}


def up(*policies: dict[str, Any], **fields: Any) -> ScaleUp:
    rules = {"policies": list(policies)} | fields
    return scaling(behavior={"scaleUp": rules}).behavior.scale_up


def down(*policies: dict[str, Any], **fields: Any) -> ScaleDown:
    rules = {"policies": list(policies)} | fields
    return scaling(behavior={"scaleDown": rules}).behavior.scale_down


@pytest.mark.parametrize(
    ("policies", "select", "allowed"),
    [
        ([PODS_4], "Max", 14),
        ([PERCENT_50], "Max", 15),
        ([PODS_4, PERCENT_50], "Max", 15),
        ([PODS_4, PERCENT_50], "Min", 14),
        ([PODS_4, PERCENT_50], "Disabled", 10),
    ],
)
def test_growth_from_ten(policies: list[dict[str, Any]], select: str, allowed: int) -> None:
    assert highest(10, up(*policies, selectPolicy=select), History(), 0.0).replicas == allowed


@pytest.mark.parametrize(
    ("policies", "select", "allowed"),
    [
        ([PODS_4], "Max", 6),
        ([PERCENT_50], "Max", 5),
        ([PODS_4, PERCENT_50], "Max", 5),
        ([PODS_4, PERCENT_50], "Min", 6),
        ([PODS_4, PERCENT_50], "Disabled", 10),
    ],
)
def test_shrinking_from_ten(policies: list[dict[str, Any]], select: str, allowed: int) -> None:
    assert lowest(10, down(*policies, selectPolicy=select), History(), 0.0).replicas == allowed


def test_a_share_rounds_so_that_the_count_always_moves() -> None:
    assert highest(1, up(PERCENT_10), History(), 0.0).replicas == 2
    assert lowest(3, down(PERCENT_10), History(), 0.0).replicas == 2


def test_what_moved_within_the_period_is_taken_off() -> None:
    grown = History(changes=(Change(-50.0, 3), Change(-10.0, 2)))
    shrunk = History(changes=(Change(-50.0, -3), Change(-10.0, -2)))

    # 10 now were 5 at the start of the period: 5 + 4.
    assert highest(10, up(PODS_4), grown, 0.0).replicas == 10
    assert highest(10, up(PODS_4, {**PERCENT_50, "value": 120}), grown, 0.0).replicas == 11
    # 10 now were 15: 15 - 4 = 11, and 15 / 2 = 7.
    assert lowest(10, down(PODS_4), shrunk, 0.0).replicas == 10
    assert lowest(10, down(PODS_4, PERCENT_50), shrunk, 0.0).replicas == 7
    # Growth within the period leaves more to shrink, as in the HPA.
    assert lowest(10, down(PODS_4), grown, 0.0).replicas == 1


def test_a_period_ends() -> None:
    grown = History(changes=(Change(0.0, 4),))

    assert highest(8, up(PODS_4), grown, 59.0).replicas == 8
    assert highest(8, up(PODS_4), grown, 60.0).replicas == 12


def test_from_zero_a_share_bounds_nothing_and_a_number_does() -> None:
    just_begun = History(changes=(Change(-1.0, 1),))

    assert highest(0, up(PERCENT_50), History(), 0.0).replicas == sys.maxsize
    assert highest(1, up(PERCENT_50), just_begun, 0.0).replicas == sys.maxsize
    assert highest(0, up(PODS_4), History(), 0.0).replicas == 4
    assert highest(0, up(PODS_4, PERCENT_50, selectPolicy="Min"), History(), 0.0).replicas == 4


def test_the_words_name_the_policy_that_counts() -> None:
    assert highest(10, up(PODS_4, PERCENT_10), History(), 0.0).words == (
        "scaleUp policy of 4 replicas in 60 s"
    )
    assert lowest(10, down(PERCENT_50), History(), 0.0).words == "scaleDown policy of 50 % in 60 s"
    assert lowest(10, down(PODS_4, selectPolicy="Disabled"), History(), 0.0).words == (
        "scaleDown is disabled"
    )
