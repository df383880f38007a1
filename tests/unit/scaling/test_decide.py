"""The decision: the steps between the load's wish and the count, each with its reason."""

from __future__ import annotations

import pytest

from tests.support.scaling_cases import Replay, load, scaling
from tidework.manifests import Scaling
from tidework.scaling import Limit

NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}


def quick(**fields: object) -> Scaling:
    """Rules without a window for shrinking."""
    return scaling(behavior=NO_WINDOW, **fields)


def test_from_zero_to_what_the_load_asks_for_in_one_step() -> None:
    replay = Replay(high=200)

    decision = replay.at(0, load(500))

    assert (decision.replicas, decision.wanted) == (125, 125)
    assert not decision.limited
    assert decision.reason == "500 waiting + 0 running over 1 slot x 4 per slot -> 125"


def test_a_burst_right_after_the_first_replica_is_still_one_step() -> None:
    replay = Replay()

    assert replay.at(0, load(1)).replicas == 1
    assert replay.at(1, load(400, 1), busy=1).replicas == 100


def test_later_growth_follows_the_defaults_of_the_hpa() -> None:
    replay = Replay(replicas=1)
    replay.at(0, load(4))

    decision = replay.at(20, load(400))

    assert (decision.replicas, decision.wanted) == (5, 100)
    assert decision.limits == (Limit.SCALE_UP_POLICY,)
    assert decision.reason.endswith("-> 100; scaleUp policy of 4 replicas in 15 s: 5")
    # The change is seen one second later, and bounds growth for 15 s from then on.
    assert [replay.at(second, load(400)).replicas for second in (21, 35, 36)] == [5, 5, 10]


def test_max_replicas_bounds_and_says_so() -> None:
    decision = Replay(high=5).at(0, load(500))

    assert (decision.replicas, decision.wanted) == (5, 5)
    assert decision.limits == (Limit.MAX_REPLICAS,)
    assert decision.reason.endswith("-> 125; maxReplicas allows 5")


def test_min_replicas_are_there_at_once_whatever_the_policies_say() -> None:
    rules = scaling(behavior={"scaleUp": {"selectPolicy": "Disabled"}})

    decision = Replay(rules, low=3).at(0, load())

    assert (decision.replicas, decision.wanted) == (3, 3)
    assert decision.limits == (Limit.MIN_REPLICAS, Limit.SCALE_UP_POLICY)
    assert "minReplicas asks for 3" in decision.reason


def test_more_than_max_replicas_shrink_at_once() -> None:
    replay = Replay(replicas=9, high=5)

    assert replay.at(0, load(500)).replicas == 5
    assert Replay(replicas=9, high=5).at(0, load(500), busy=7).replicas == 7


@pytest.mark.parametrize(("backlog", "replicas"), [(36, 10), (35, 9), (44, 10), (45, 12)])
def test_within_the_tolerance_nothing_changes(backlog: int, replicas: int) -> None:
    decision = Replay(quick(), replicas=10).at(0, load(backlog))

    assert decision.replicas == replicas
    if backlog in (36, 44):
        assert not decision.limited
    if backlog == 44:
        assert decision.reason.endswith("-> 11; within the tolerance of 0.1 around 10")


def test_shrinking_follows_the_highest_recommendation_of_the_window() -> None:
    rules = scaling(behavior={"scaleDown": {"stabilizationWindowSeconds": 60}})
    replay = Replay(rules)
    replay.at(0, load(40))
    replay.at(10, load(24))

    decision = replay.at(20, load(8))

    assert (decision.replicas, decision.wanted) == (10, 2)
    assert decision.limits == (Limit.SCALE_DOWN_WINDOW,)
    assert decision.reason.endswith("-> 2; scaleDown window of 60 s keeps 10, 40 s left")
    assert [replay.at(second, load(8)).replicas for second in (59, 60, 69, 70, 80)] == [
        10,
        6,
        6,
        2,
        2,
    ]


def test_what_a_new_history_finds_counts_as_a_recommendation() -> None:
    replay = Replay(replicas=10)

    assert replay.at(0, load(8)).replicas == 10
    assert replay.at(299, load(8)).replicas == 10
    assert replay.at(300, load(8)).replicas == 2


def test_growth_follows_the_lowest_recommendation_of_its_window() -> None:
    rules = scaling(behavior={"scaleUp": {"stabilizationWindowSeconds": 30}})
    replay = Replay(rules, replicas=1)

    decision = replay.at(0, load(8))

    assert (decision.replicas, decision.wanted) == (1, 2)
    assert decision.limits == (Limit.SCALE_UP_WINDOW,)
    assert decision.reason.endswith("scaleUp window of 30 s keeps 1, 30 s left")
    assert replay.at(10, load(8)).replicas == 1
    seconds = (11, 29, 30, 39, 40)
    assert [replay.at(second, load(16)).replicas for second in seconds] == [1, 1, 2, 2, 4]


def test_policies_bound_shrinking() -> None:
    behavior = {
        "scaleDown": {
            "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}],
        }
    }
    replay = Replay(scaling(behavior=behavior), replicas=10)

    decision = replay.at(0, load(4))

    assert decision.replicas == 8
    assert decision.limits == (Limit.SCALE_DOWN_POLICY,)
    assert decision.reason.endswith("scaleDown policy of 2 replicas in 60 s: 8")


def test_the_last_replica_goes_after_idle_seconds_and_not_before() -> None:
    replay = Replay(quick(idleSeconds=30), replicas=3)

    first = replay.at(0, load())
    assert (first.replicas, first.wanted) == (1, 0)
    assert first.limits == (Limit.IDLE_COUNTDOWN,)
    assert first.reason == "nothing waiting or running -> 0; idle for 0 of 30 s"
    assert replay.at(29, load()).replicas == 1
    last = replay.at(30, load())
    assert last.replicas == 0
    assert not last.limited


def test_the_window_does_not_come_on_top_of_idle_seconds() -> None:
    replay = Replay(scaling(idleSeconds=30), replicas=7)

    waiting = replay.at(0, load())
    assert waiting.replicas == 7
    assert waiting.limits == (Limit.SCALE_DOWN_WINDOW, Limit.IDLE_COUNTDOWN)
    assert waiting.reason.endswith("keeps 7, 300 s left; idle for 0 of 30 s")
    assert replay.at(30, load()).replicas == 0


def test_the_policies_hold_on_the_way_to_zero() -> None:
    behavior = {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}
    replay = Replay(scaling(idleSeconds=10, behavior=behavior), replicas=2)
    replay.at(0, load())

    assert replay.at(10, load()).replicas == 1
    assert replay.at(11, load()).replicas == 1
    assert replay.at(71, load()).replicas == 0


@pytest.mark.parametrize("found", [load(1), load(0, 1), load(due_soon=1)])
def test_a_job_that_waits_runs_or_is_due_soon_starts_the_countdown_anew(
    found: object,
) -> None:
    replay = Replay(quick(idleSeconds=30), replicas=1)
    replay.at(0, load())
    replay.at(29, found)  # type: ignore[arg-type]

    assert replay.at(30, load()).replicas == 1
    assert replay.at(59, load()).replicas == 1
    assert replay.at(60, load()).replicas == 0


def test_what_is_due_soon_keeps_the_last_replica_but_starts_none() -> None:
    replay = Replay(quick(idleSeconds=1), replicas=1)
    replay.at(0, load(due_soon=3))

    decision = replay.at(100, load(due_soon=3))

    assert decision.replicas == 1
    assert decision.reason == (
        "nothing waiting or running -> 0; 3 due soon, the last replica stays"
    )
    assert Replay().at(0, load(due_soon=3)).replicas == 0


def test_with_min_replicas_an_idle_queue_shrinks_by_the_window_alone() -> None:
    replay = Replay(scaling(idleSeconds=30), replicas=5, low=1)
    replay.at(0, load())

    assert replay.at(100, load()).replicas == 5
    decision = replay.at(300, load())
    assert (decision.replicas, decision.limits) == (1, (Limit.MIN_REPLICAS,))


def test_busy_replicas_are_never_taken_away() -> None:
    replay = Replay(quick(), replicas=8, slots=4)

    decision = replay.at(0, load(0, 5), busy=5)

    assert (decision.replicas, decision.wanted, decision.drain_to) == (5, 2, 2)
    assert decision.limits == (Limit.BUSY,)
    assert decision.reason == "5 running over 4 slots -> 2; 5 busy are not taken away"


def test_the_floor_of_busy_replicas_never_makes_the_count_grow() -> None:
    """A lease may outlive its replica: more busy ones may be reported than there are."""
    assert Replay(quick(), replicas=2).at(0, load(0, 2), busy=6).replicas == 2


def test_draining_replicas_count_against_max_replicas() -> None:
    decision = Replay(replicas=2, high=6).at(0, load(500), draining=3)

    assert decision.replicas == 3
    assert Limit.DRAINING in decision.limits
    assert decision.reason.endswith("3 still draining count against maxReplicas, leaving 3")


def test_draining_replicas_take_no_other_away() -> None:
    assert Replay(replicas=4, high=5).at(0, load(500), draining=5).replicas == 4


def test_fires_ahead_raise_the_count_and_end_idleness() -> None:
    replay = Replay(quick(idleSeconds=10))
    replay.at(0, load())

    decision = replay.at(100, load(), prescale=4)

    assert (decision.replicas, decision.wanted) == (4, 4)
    assert decision.history.idle_since is None


def test_an_unreadable_load_is_no_empty_queue() -> None:
    replay = Replay(quick(idleSeconds=1), replicas=6)
    replay.at(0, load(24))

    decision = replay.at(500, None)

    assert decision.replicas == 6
    assert decision.limits == (Limit.LOAD_UNKNOWN,)
    assert decision.reason == "load unknown for 0 s (redis is away); holding 6"
    assert replay.at(900, None).reason == "load unknown for 400 s (redis is away); holding 6"


def test_after_fallback_seconds_at_least_min_replicas_run() -> None:
    replay = Replay(scaling(fallbackSeconds=60), low=2)

    assert replay.at(0, None).replicas == 0
    assert replay.at(59, None).replicas == 0
    decision = replay.at(60, None)
    assert decision.replicas == 2
    assert decision.reason.endswith("raised to minReplicas 2")
    assert replay.at(61, None).reason.endswith("holding 2")


def test_more_than_max_replicas_stay_while_the_load_is_unknown() -> None:
    replay = Replay(replicas=9, high=5)

    assert replay.at(0, None).replicas == 9
    assert replay.at(1000, None).replicas == 9


def test_an_outage_uses_up_neither_the_window_nor_the_idle_time() -> None:
    windowed = Replay(replicas=6, low=1)
    windowed.at(0, load(24))
    windowed.at(1000, None)
    assert windowed.at(1001, load()).replicas == 6

    idle = Replay(quick(idleSeconds=30), replicas=1)
    idle.at(0, load())
    idle.at(20, None)
    assert idle.at(31, load()).replicas == 1
    assert idle.at(61, load()).replicas == 0


def test_an_outage_that_is_over_starts_anew_when_it_comes_again() -> None:
    replay = Replay(scaling(fallbackSeconds=60), low=2)
    replay.at(0, None)
    replay.at(50, load())
    replay.replicas = 0

    assert replay.at(61, None).replicas == 0


def test_the_history_stays_small() -> None:
    replay = Replay(quick(), high=50)
    for second in range(2000):
        replay.at(second, load((second * 37) % 200, 1))

    history = replay.history
    assert len(history.highs) <= 51
    assert len(history.lows) <= 51
    # scaleUp's and scaleDown's periods are 15 s: one change a second at most.
    assert len(history.changes) <= 16


def test_a_paused_queue_asks_for_no_replicas_but_those_of_what_still_runs() -> None:
    replay = Replay(quick(idleSeconds=30), replicas=4)

    decision = replay.at(0, load(500, 2, due_soon=3, paused=True), busy=2)
    assert decision.replicas == 2
    assert decision.reason.startswith("the queue is paused with 500 waiting: 2 running")

    # What runs has ended, and after idleSeconds the last replica goes.
    assert replay.at(10, load(500, paused=True)).replicas == 1
    assert replay.at(41, load(500, paused=True)).replicas == 0
    assert replay.at(42, load(500)).replicas > 0, "resumed: back in one step"


def test_a_paused_queue_keeps_its_min_replicas() -> None:
    assert Replay(quick(), replicas=5, low=2).at(0, load(500, paused=True)).replicas == 2
