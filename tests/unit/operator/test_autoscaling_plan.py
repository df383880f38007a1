"""Plans: what is asked of Redis and of the cluster in one round, for fleets written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidework.scaling import Decision, History
from tidework_operator.autoscaling.fleet import Fleet, Rank, WorkerPod
from tidework_operator.autoscaling.plan import (
    MARKS_PER_ROUND,
    SETTLE_S,
    SILENT_S,
    Action,
    Mark,
    Plan,
    Scale,
    Seen,
    Unmark,
    cordon,
    plan,
)

NOW = 1000.0
LONG_AGO = NOW - 100
FORGOTTEN = Seen()


def pod(
    name: str,
    leases: int = 0,
    rank: Rank = Rank.READY,
    *,
    marked: bool = False,
    terminating: bool = False,
    unwanted: bool = False,
) -> WorkerPod:
    """With a worker that has presence."""
    return WorkerPod(name, rank, terminating, False, marked, f"{name}.1", leases, unwanted)


def starting(name: str) -> WorkerPod:
    return WorkerPod(name, Rank.NOT_READY)


def fleet(*pods: WorkerPod, replicas: int | None = None, rolling: bool = False) -> Fleet:
    count = sum(not each.terminating for each in pods) if replicas is None else replicas
    return Fleet(count, rolling, pods)


def to(drain_to: int, replicas: int | None = None) -> Decision:
    count = drain_to if replicas is None else replicas
    return Decision(count, count, drain_to, "because", History())


def step(
    given_fleet: Fleet, drain_to: int, *marked: str, seen: Seen = FORGOTTEN, only: bool = False
) -> Plan:
    """A plan after the cordon that belongs to it; marks of ``marked`` were seen long ago."""
    known = replace(seen, marked=dict.fromkeys(marked, LONG_AGO))
    decision = to(drain_to, given_fleet.replicas if only else None)
    wanted = cordon(given_fleet, decision, known, NOW)
    leases = {each.incarnation: each.leases for each in given_fleet.pods}
    return plan(given_fleet, decision, {who: leases[who] for who in wanted}, known, NOW)


def actions(found: Plan, kind: type[Action]) -> list[Action]:
    return [action for action in found.actions if isinstance(action, kind)]


def cordoned(given_fleet: Fleet, drain_to: int, seen: Seen = FORGOTTEN) -> set[str]:
    return {who.removesuffix(".1") for who in cordon(given_fleet, to(drain_to), seen, NOW)}


def test_growing_from_zero_is_one_action() -> None:
    found = plan(fleet(), to(7), {}, FORGOTTEN, NOW)

    assert found.actions == (Scale(7),)


def test_growing_takes_marks_off_and_lets_all_claim() -> None:
    here = fleet(pod("a", marked=True), pod("b", 1))

    assert step(here, 5).actions == (Scale(5), Unmark("a"))
    assert cordoned(here, 5) == set()


def test_nothing_wanted_is_nothing_done() -> None:
    here = fleet(pod("a"), pod("b", 1))

    assert step(here, 2).actions == ()
    assert cordoned(here, 2) == set()


def test_the_least_busy_are_cordoned_and_no_more_than_have_to() -> None:
    here = fleet(pod("a", 3), pod("b", 1), pod("c"), pod("d", 2))

    assert cordoned(here, 3) == {"c"}
    assert cordoned(here, 1) == {"c", "b", "d"}


def test_whom_a_person_cordoned_goes_first_busy_or_not() -> None:
    here = fleet(pod("a"), pod("b"), pod("c", 3, unwanted=True))

    assert cordoned(here, 2) == {"c"}
    assert cordoned(here, 1) == {"a", "c"}
    assert step(here, 2).actions == (), "it is not free yet"
    free = fleet(pod("a", marked=True), pod("b"), pod("c", unwanted=True))
    assert step(free, 2, "a").actions == (Unmark("a"), Mark("c"))


def test_whom_a_person_cordoned_keeps_its_place_in_the_controllers_order() -> None:
    here = fleet(pod("a", unwanted=True), pod("unwell", 2, Rank.NOT_READY))

    assert cordoned(here, 1) == {"unwell"}


def test_who_is_cordoned_stays_so_among_equals() -> None:
    here = fleet(pod("a"), pod("b"), pod("c"))

    assert cordoned(here, 2, Seen(cordoned=frozenset({"c.1"}))) == {"c"}


def test_after_a_change_of_leaders_marks_tell_who_was_chosen() -> None:
    here = fleet(pod("a"), pod("b"), pod("c", marked=True))

    assert cordoned(here, 2) == {"c"}


def test_a_pod_that_would_be_taken_first_is_cordoned_first_busy_or_not() -> None:
    here = fleet(pod("idle"), pod("unwell", 2, Rank.NOT_READY))

    assert cordoned(here, 1) == {"unwell"}


def test_starting_pods_count_as_the_first_victims_and_need_no_cordon() -> None:
    here = fleet(pod("a"), pod("b"), starting("c"), starting("d"))

    assert cordoned(here, 2) == set()
    assert cordoned(here, 1) == {"a"}


def test_victims_stay_cordoned_until_they_are_gone() -> None:
    not_taken_yet = fleet(pod("a"), pod("b", 1), replicas=1)
    on_their_way = fleet(pod("a", terminating=True), pod("b", 1))
    drained_by_others = fleet(pod("a", 1, terminating=True), pod("b", 1))

    assert cordoned(not_taken_yet, 1) == {"a"}
    assert cordoned(on_their_way, 1) == {"a"}
    assert cordoned(drained_by_others, 1) == set()


def test_nobody_is_cordoned_during_a_rollout_unless_all_go() -> None:
    here = fleet(pod("a"), pod("b"), rolling=True)

    assert cordoned(here, 1) == set()
    assert cordoned(here, 0) == {"a", "b"}


def test_a_free_pod_is_marked_then_the_count_follows() -> None:
    first = fleet(pod("a", 1), pod("b"))
    then = fleet(pod("a", 1), pod("b", marked=True))

    assert step(first, 1).actions == (Mark("b"),)
    assert step(then, 1).actions == ()
    assert step(then, 1, "b").actions == (Scale(1, frozenset({"b"})),)


def test_a_mark_that_is_too_young_waits() -> None:
    here = fleet(pod("a", 1), pod("b", marked=True))
    young = Seen(marked={"b": NOW - SETTLE_S + 0.1})

    found = plan(here, to(1), {"b.1": 0}, young, NOW)

    assert found.actions == ()
    assert "time to see" in found.waiting


def test_busy_pods_are_cordoned_and_waited_for() -> None:
    found = step(fleet(pod("a", 1), pod("b", 1)), 1)

    assert found.actions == ()
    assert found.waiting == "cordoned workers finish their jobs"


def test_an_idle_pod_that_is_not_cordoned_is_not_taken() -> None:
    here = fleet(pod("a", marked=True), pod("b", marked=True))

    found = plan(here, to(1), {}, Seen(marked={"a": LONG_AGO, "b": LONG_AGO}), NOW)

    assert actions(found, Scale) == []
    assert set(found.actions) == {Unmark("a"), Unmark("b")}


def test_a_job_claimed_just_before_the_cordon_is_seen_in_the_same_step() -> None:
    here = fleet(pod("a", 1), pod("b", marked=True))

    found = plan(here, to(1), {"b.1": 1}, Seen(marked={"b": LONG_AGO}), NOW)

    assert found.actions == (Unmark("b"),)


def test_pods_go_as_they_empty() -> None:
    here = fleet(pod("a", 1), pod("b", 2), pod("c", marked=True), pod("d", 1))

    assert step(here, 1, "c").actions == (Scale(3, frozenset({"c"})),)


def test_while_a_mark_is_taken_off_the_count_waits() -> None:
    here = fleet(pod("a", 1, marked=True), pod("b", marked=True), pod("c", 1))

    found = step(here, 2, "b")
    assert found.actions == (Unmark("a"),)
    after = fleet(pod("a", 1), pod("b", marked=True), pod("c", 1))
    recent = Seen(unmarked=NOW - SETTLE_S + 0.1)
    assert step(after, 2, "b", seen=recent).actions == ()
    assert actions(step(after, 2, "b", seen=Seen(unmarked=LONG_AGO)), Scale)


def test_pods_of_the_last_step_are_waited_for_and_keep_their_marks() -> None:
    here = fleet(pod("a", 1), pod("b", marked=True), pod("c", marked=True), replicas=2)

    assert step(here, 2, "b", "c").actions == ()
    found = step(here, 1, "b", "c")
    assert found.actions == ()
    assert "1 pods of the last step" in found.waiting


def test_marks_without_a_reason_are_taken_off() -> None:
    here = fleet(pod("a", marked=True), pod("b"))

    assert step(here, 2).actions == (Unmark("a"),)


def test_a_rollout_freezes_and_takes_marks_off() -> None:
    here = fleet(pod("a", marked=True), pod("b"), rolling=True)

    found = step(here, 1, "a")
    assert found.actions == (Unmark("a"),)
    assert found.waiting == "a rollout is under way"


@pytest.mark.parametrize("rolling", [False, True])
def test_to_zero_needs_no_marks_and_no_wait(rolling: bool) -> None:
    here = fleet(pod("a"), pod("b"), starting("c"), rolling=rolling)

    assert step(here, 0).actions == (Scale(0, frozenset("abc")),)


def test_to_zero_waits_for_the_last_job() -> None:
    assert step(fleet(pod("a"), pod("b", 1)), 0).actions == (Mark("a"),)


def test_starting_pods_go_first_and_are_marked_in_case_they_get_ready() -> None:
    here = fleet(pod("a"), starting("b"))
    then = fleet(pod("a"), replace(starting("b"), marked=True))

    assert step(here, 1).actions == (Mark("b"),)
    assert step(then, 1, "b").actions == (Scale(1, frozenset({"b"})),)


def test_a_busy_pod_that_is_not_ready_bars_the_way_to_ready_ones() -> None:
    here = fleet(pod("idle"), pod("unwell", 1, Rank.NOT_READY), starting("new"))

    found = step(here, 1)
    # The new one is of the same rank: a mark puts it before the busy one.
    assert found.actions == (Mark("new"),)
    assert "pod unwell is not ready" in found.waiting


def test_replicas_that_never_got_a_pod_go_at_once() -> None:
    here = fleet(pod("a", 1), replicas=4)

    assert step(here, 1).actions == (Scale(1),)


def test_a_silent_pod_is_free_only_after_a_while() -> None:
    silent = WorkerPod("a", Rank.READY)
    here = fleet(silent, pod("b", 1))
    recent, old = (
        Seen(silent={"a": NOW - SILENT_S + 1}),
        Seen(silent={"a": NOW - SILENT_S}),
    )

    assert step(here, 1, seen=recent).actions == ()
    assert step(here, 1, seen=old).actions == (Mark("a"),)


def test_a_pod_whose_earlier_incarnation_still_holds_leases_is_not_free() -> None:
    here = fleet(pod("a", 2), pod("b", 3))

    found = plan(here, to(1), {"a.1": 0}, FORGOTTEN, NOW)

    assert found.actions == ()


def test_many_marks_are_spread_over_rounds() -> None:
    here = fleet(*(pod(f"p{i:03}") for i in range(200)), pod("q", 1))

    assert len(step(here, 1).actions) == MARKS_PER_ROUND


# Mostly what lets a pod go: else no step would ever be taken.
ages = st.sampled_from([LONG_AGO, LONG_AGO, LONG_AGO, NOW - 1, None])
seldom = st.sampled_from([False] * 7 + [True])


@st.composite
def situations(draw: st.DrawFn) -> tuple[Fleet, int, dict[str, int], Seen]:
    """A fleet, where it is to go, who was cordoned with which leases, what was seen."""
    pods, cordons, marked, silent = [], {}, {}, {}
    for i in range(draw(st.integers(1, 5))):
        name = f"p{i}"
        rank = draw(st.sampled_from([Rank.PENDING, Rank.NOT_READY, Rank.READY, Rank.READY]))
        has_worker = rank >= Rank.NOT_READY and not draw(seldom)
        leases = draw(st.sampled_from([0, 0, 1])) if has_worker else 0
        since = None if leases and not draw(seldom) else draw(ages)
        if since is not None:
            marked[name] = since
        if rank is Rank.READY and not has_worker and draw(st.booleans()):
            silent[name] = draw(ages) or NOW
        if has_worker and not draw(seldom):
            cordons[f"{name}.1"] = leases + draw(seldom)
        incarnation = f"{name}.1" if has_worker else ""
        leaving, is_marked = draw(seldom), since is not None
        pods.append(WorkerPod(name, rank, leaving, False, is_marked, incarnation, leases))
    active = sum(not each.terminating for each in pods)
    replicas = max(0, active + draw(st.sampled_from([0, 0, 0, 1, -1])))
    unmarked = NOW - 1 if draw(seldom) else float("-inf")
    here = Fleet(replicas, draw(seldom), tuple(pods))
    return here, draw(st.integers(0, 5)), cordons, Seen(marked, silent, unmarked)


def could_be_taken(here: Fleet, count: int, costs: dict[str, int]) -> set[str]:
    """Every pod that the ReplicaSet controller might take on the way to ``count``."""
    active = here.active
    surplus = len(active) - count
    if surplus <= 0:
        return set()
    order = sorted((each.rank, costs.get(each.name, 0)) for each in active)
    last = order[surplus - 1]
    return {each.name for each in active if (each.rank, costs.get(each.name, 0)) <= last}


@settings(max_examples=400, deadline=None)
@given(situations())
def test_no_pod_is_taken_that_may_hold_a_job(
    situation: tuple[Fleet, int, dict[str, int], Seen],
) -> None:
    here, drain_to, cordons, seen = situation
    found = plan(here, to(drain_to), cordons, seen, NOW)

    scales = actions(found, Scale)
    assert len(scales) <= 1
    for scale in scales:
        assert isinstance(scale, Scale)
        if scale.replicas >= here.replicas:
            assert scale.replicas == drain_to
            continue
        assert scale.replicas >= drain_to
        # The cache of the controller has the marks that are old; of the young ones, who knows.
        surely = {name: -100 for name, since in seen.marked.items() if since == LONG_AGO}
        all_of_them = dict.fromkeys(seen.marked, -100)
        for costs in (surely, all_of_them):
            for name in could_be_taken(here, scale.replicas, costs):
                taken = next(each for each in here.active if each.name == name)
                assert taken.leases == 0
                if taken.incarnation:
                    assert cordons[taken.incarnation] == 0
                elif taken.is_ready:
                    assert seen.silent[name] == LONG_AGO


@settings(max_examples=200, deadline=None)
@given(situations())
def test_marks_are_on_victims_alone(situation: tuple[Fleet, int, dict[str, int], Seen]) -> None:
    here, drain_to, cordons, seen = situation
    found = plan(here, to(drain_to), cordons, seen, NOW)

    marks = {action.pod for action in found.actions if isinstance(action, Mark)}
    unmarks = {action.pod for action in found.actions if isinstance(action, Unmark)}
    active = {each.name: each for each in here.active}
    assert not marks & unmarks
    assert all(not active[name].marked and not active[name].leases for name in marks)
    assert all(active[name].marked for name in unmarks)
    if drain_to >= here.replicas:
        assert not marks
