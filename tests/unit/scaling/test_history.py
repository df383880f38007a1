"""Windows and periods: what earlier decisions still say."""

from __future__ import annotations

from tests.support.scaling_cases import scaling
from tidework.scaling import History
from tidework.scaling.history import Change, Held, Recommendation

BEHAVIOR = scaling(
    behavior={
        "scaleUp": {
            "stabilizationWindowSeconds": 60,
            "policies": [{"type": "Pods", "value": 9, "periodSeconds": 30}],
        },
        "scaleDown": {"policies": [{"type": "Pods", "value": 9, "periodSeconds": 90}]},
    }
).behavior


def recommended(*counts: tuple[float, int]) -> History:
    history = History()
    for at, replicas in counts:
        history = history.recommended(replicas, at, BEHAVIOR)
    return history


def test_only_recommendations_that_none_tops_or_undercuts_are_kept() -> None:
    history = recommended((0, 5), (1, 9), (2, 4), (3, 7), (4, 7))

    assert history.highs == (Recommendation(1, 9), Recommendation(4, 7))
    assert history.lows == (Recommendation(2, 4), Recommendation(4, 7))


def test_recommendations_leave_with_their_window() -> None:
    history = recommended((0, 2), (10, 5), (70, 6))

    assert history.lows == (Recommendation(70, 6),)
    history = recommended((0, 9), (10, 8), (300, 2))
    assert history.highs == (Recommendation(10, 8), Recommendation(300, 2))


def test_shrinking_waits_for_the_last_recommendation_that_is_high_enough() -> None:
    history = recommended((0, 10), (20, 9), (50, 3))

    assert history.hold_down(12, 1, 60, 300) == Held(10, 240)
    assert history.hold_down(9, 1, 60, 300) == Held(9, 260)
    assert history.hold_down(12, 1, 310, 300) == Held(9, 10)
    assert history.hold_down(12, 1, 400, 300).replicas == 1
    assert history.hold_down(12, 11, 60, 300).replicas == 11


def test_growth_waits_for_the_last_recommendation_that_is_low_enough() -> None:
    history = recommended((0, 2), (10, 4), (30, 8))

    assert history.hold_up(1, 9, 40, 60) == Held(2, 20)
    assert history.hold_up(4, 9, 40, 60) == Held(4, 30)
    assert history.hold_up(1, 9, 65, 60) == Held(4, 5)
    assert history.hold_up(1, 9, 100, 60).replicas == 9
    assert history.hold_up(1, 3, 75, 60).replicas == 3


def test_changes_are_noted_when_the_count_is_another_one() -> None:
    history = History().seen(3, 0).seen(3, 1).seen(8, 2).seen(6, 3)

    assert history.replicas == 6
    assert history.changes == (Change(2, 5), Change(3, -2))
    assert history.change_within(10, 5) == 3
    assert history.change_within(2.5, 5) == -2
    assert history.change_within(2, 5) == 0


def test_changes_are_kept_for_the_longest_period_of_both_directions() -> None:
    history = History().seen(1, 0).seen(2, 10).recommended(2, 99, BEHAVIOR)

    assert history.changes == (Change(10, 1),)
    assert history.recommended(2, 100, BEHAVIOR).changes == ()
