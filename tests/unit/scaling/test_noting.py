"""Which decisions are written: steps at once, other reasons now and then, nothing at rest."""

from __future__ import annotations

from tidework.scaling.decision import Decision, Limit
from tidework.scaling.history import History
from tidework.scaling.noting import REFRESH_S, Noting


def decision(replicas: int, reason: str = "idle", *limits: Limit) -> Decision:
    return Decision(replicas, replicas, replicas, reason, History(), limits)


def written(noting: Noting, before: int, made: Decision, now: float) -> bool | None:
    """Was it a step? None if it was not written."""
    news = noting.news(before, made, None, now)
    if news is None:
        return None
    is_step = noting.is_step(news)
    noting.note(news, now)
    return is_step


def test_the_first_is_written_and_is_a_step_if_it_changes_something() -> None:
    assert written(Noting(), 1, decision(1), 0) is False
    assert written(Noting(), 1, decision(2), 0) is True


def test_a_change_of_the_replicas_or_of_their_limits_is_a_step() -> None:
    noting = Noting()
    written(noting, 1, decision(1), 0)

    assert written(noting, 1, decision(2), 1) is True
    assert written(noting, 2, decision(2, "idle", Limit.MAX_REPLICAS), 2) is True
    assert written(noting, 2, decision(2, "idle", Limit.MAX_REPLICAS), 3) is None


def test_another_reason_is_written_now_and_then() -> None:
    noting = Noting()
    written(noting, 1, decision(1, "12 waiting"), 0)

    assert written(noting, 1, decision(1, "11 waiting"), REFRESH_S - 1) is None
    assert written(noting, 1, decision(1, "10 waiting"), REFRESH_S) is False
    assert written(noting, 1, decision(1, "10 waiting"), 9 * REFRESH_S) is None


def test_what_could_not_be_written_comes_again() -> None:
    noting = Noting()

    assert noting.news(1, decision(2), None, 0) is not None
    assert noting.news(1, decision(2), None, 1) is not None
