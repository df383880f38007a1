"""Which instants are due and what becomes of each: plan_fires alone, without a broker."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scheduler.rig import at
from tidework.model.fire import Verdict
from tidework.model.schedules.cron import parse_cron
from tidework.model.schedules.schedule import Every
from tidework.scheduler.due import CatchUp, CatchUpMode, FireRules, Gap, PlannedFire, plan_fires

LATEST, ALL, NONE = CatchUpMode.LATEST, CatchUpMode.ALL, CatchUpMode.NONE
MINUTE = timedelta(minutes=1)
LAST_FIRE = at("10:00:00")


def rules_of(catch_up: CatchUp | None = None, **given: object) -> FireRules:
    return FireRules(
        parse_cron("* * * * *"),
        catch_up=catch_up or CatchUp(),
        **given,  # type: ignore[arg-type]
    )


def plan_all(
    rules: FireRules, after: datetime, now: datetime, limit: int = 100
) -> list[PlannedFire]:
    """All due fires, planned in steps of ``limit``, as the scheduler does."""
    found: list[PlannedFire] = []
    gap: Gap | None = None
    first = rules.next(after)
    while first is not None and first <= now:
        plan = plan_fires(rules, first, now, limit=limit, gap=gap)
        assert 1 <= len(plan.fires) <= limit
        found += plan.fires
        gap = plan.gap
        first = rules.next(found[-1].at)
    return found


def counts(fires: list[PlannedFire]) -> dict[str, int]:
    return dict(Counter(fire.wanted.name for fire in fires))


def test_a_fire_on_time_is_enqueued_whatever_the_policy() -> None:
    for mode in CatchUpMode:
        rules = rules_of(CatchUp(mode))
        fires = plan_all(rules, LAST_FIRE, LAST_FIRE + MINUTE + timedelta(milliseconds=3))
        assert fires == [PlannedFire(at("10:01:00"), Verdict.ENQUEUED)]


@pytest.mark.parametrize(
    "missed, mode, expected",
    [
        (0, LATEST, {}),
        (0, ALL, {}),
        (0, NONE, {}),
        (1, LATEST, {"ENQUEUED": 1}),
        (1, ALL, {"ENQUEUED": 1}),
        (1, NONE, {"ENQUEUED": 1}),
        (50, LATEST, {"MISSED_CATCH_UP": 49, "ENQUEUED": 1}),
        (50, ALL, {"ENQUEUED": 50}),
        (50, NONE, {"MISSED_CATCH_UP": 50}),
        (5000, LATEST, {"MISSED_CATCH_UP": 4999, "ENQUEUED": 1}),
        (5000, ALL, {"ENQUEUED": 5000}),
        (5000, NONE, {"MISSED_CATCH_UP": 5000}),
    ],
)
def test_missed_fires(missed: int, mode: CatchUpMode, expected: dict[str, int]) -> None:
    now = LAST_FIRE + missed * MINUTE + timedelta(seconds=20)

    fires = plan_all(rules_of(CatchUp(mode)), LAST_FIRE, now)

    assert counts(fires) == expected
    assert [fire.at for fire in fires] == [LAST_FIRE + n * MINUTE for n in range(1, missed + 1)]


@pytest.mark.parametrize(
    "missed, mode, expected",
    [
        (1, LATEST, {"ENQUEUED": 1}),
        (50, LATEST, {"MISSED_DEADLINE": 44, "MISSED_CATCH_UP": 5, "ENQUEUED": 1}),
        (50, ALL, {"MISSED_DEADLINE": 44, "ENQUEUED": 6}),
        (50, NONE, {"MISSED_DEADLINE": 44, "MISSED_CATCH_UP": 6}),
        (5000, LATEST, {"MISSED_DEADLINE": 4994, "MISSED_CATCH_UP": 5, "ENQUEUED": 1}),
        (5000, ALL, {"MISSED_DEADLINE": 4994, "ENQUEUED": 6}),
        (5000, NONE, {"MISSED_DEADLINE": 4994, "MISSED_CATCH_UP": 6}),
    ],
)
def test_missed_fires_with_a_deadline_of_320_s(
    missed: int, mode: CatchUpMode, expected: dict[str, int]
) -> None:
    rules = rules_of(CatchUp(mode), deadline=timedelta(seconds=320))
    now = LAST_FIRE + missed * MINUTE + timedelta(seconds=20)

    assert counts(plan_all(rules, LAST_FIRE, now)) == expected


def test_a_deadline_that_the_latest_fire_misses_too_leaves_nothing_to_run() -> None:
    rules = rules_of(CatchUp(LATEST), deadline=timedelta(seconds=10))
    now = at("10:50:20")

    assert counts(plan_all(rules, LAST_FIRE, now)) == {"MISSED_DEADLINE": 50}


def test_a_deadline_is_kept_to_the_second() -> None:
    rules = rules_of(deadline=timedelta(seconds=10))

    [in_time] = plan_all(rules, LAST_FIRE, at("10:01:10"))
    [late] = plan_all(rules, LAST_FIRE, at("10:01:10") + timedelta(microseconds=1))

    assert (in_time.wanted, late.wanted) == (Verdict.ENQUEUED, Verdict.MISSED_DEADLINE)


@pytest.mark.parametrize("mode", list(CatchUpMode))
def test_a_gap_of_a_minute_is_replayed_in_full(mode: CatchUpMode) -> None:
    rules = FireRules(Every(timedelta(seconds=1)), catch_up=CatchUp(mode))

    whole = plan_all(rules, LAST_FIRE, LAST_FIRE + timedelta(seconds=61))

    assert counts(whole) == {"ENQUEUED": 61}


def test_one_moment_more_than_a_minute_is_a_gap_for_the_policy() -> None:
    rules = FireRules(Every(timedelta(seconds=1)), catch_up=CatchUp(LATEST))
    now = LAST_FIRE + timedelta(seconds=61, microseconds=1)

    fires = plan_all(rules, LAST_FIRE, now, limit=7)

    assert counts(fires) == {"MISSED_CATCH_UP": 60, "ENQUEUED": 1}
    assert fires[-1].wanted is Verdict.ENQUEUED


def test_all_with_a_limit_runs_the_newest() -> None:
    fires = plan_all(rules_of(CatchUp(ALL, limit=3)), LAST_FIRE, at("10:50:20"))

    assert counts(fires) == {"MISSED_CATCH_UP": 47, "ENQUEUED": 3}
    assert [fire.at for fire in fires if fire.wanted is Verdict.ENQUEUED] == [
        at("10:48:00"),
        at("10:49:00"),
        at("10:50:00"),
    ]


def test_a_limit_above_what_was_missed_runs_all() -> None:
    fires = plan_all(rules_of(CatchUp(ALL, limit=100)), LAST_FIRE, at("10:50:20"))

    assert counts(fires) == {"ENQUEUED": 50}


@pytest.mark.parametrize("mode, runs", [(ALL, 6), (LATEST, 1), (NONE, 0)])
def test_nothing_older_than_the_window_runs(mode: CatchUpMode, runs: int) -> None:
    rules = rules_of(CatchUp(mode, window=timedelta(seconds=320)))

    found = counts(plan_all(rules, LAST_FIRE, at("10:50:20")))

    assert found.get("ENQUEUED", 0) == runs
    assert found["MISSED_CATCH_UP"] == 50 - runs


def test_a_window_that_even_the_latest_fire_is_older_than() -> None:
    rules = FireRules(
        parse_cron("0 * * * *"), catch_up=CatchUp(LATEST, window=timedelta(minutes=10))
    )

    fires = plan_all(rules, at("10:00:00"), at("12:30:00"))

    assert counts(fires) == {"MISSED_CATCH_UP": 2}


def test_fires_due_while_a_gap_is_worked_off_are_fires_on_time() -> None:
    """The gap ends where it was found; what comes after it is late by no outage."""
    rules = rules_of(CatchUp(NONE))
    found = plan_fires(rules, at("10:01:00"), at("10:50:20"), limit=60)
    first = rules.next(found.fires[-1].at)

    assert first == at("10:51:00")
    later = plan_fires(rules, first, at("10:51:01"), limit=60, gap=found.gap)
    assert later.fires == (PlannedFire(at("10:51:00"), Verdict.ENQUEUED),)


def test_start_and_end_bound_the_instants() -> None:
    rules = rules_of(CatchUp(ALL), start=at("10:10:00"), end=at("10:12:00"))

    fires = plan_all(rules, LAST_FIRE, at("10:50:20"))

    assert [fire.at for fire in fires] == [at("10:10:00"), at("10:11:00"), at("10:12:00")]
    assert rules.next(at("10:12:00")) is None


def test_the_latest_before_the_end_runs_after_an_outage() -> None:
    rules = rules_of(CatchUp(LATEST), end=at("10:12:30"))

    fires = plan_all(rules, LAST_FIRE, at("10:50:20"))

    assert fires[-1] == PlannedFire(at("10:12:00"), Verdict.ENQUEUED)
    assert counts(fires) == {"MISSED_CATCH_UP": 11, "ENQUEUED": 1}


def test_upcoming_ends_with_the_schedule() -> None:
    rules = rules_of(end=at("10:03:00"))

    assert rules.upcoming(LAST_FIRE, 2) == (at("10:01:00"), at("10:02:00"))
    assert len(rules.upcoming(LAST_FIRE, 5)) == 3
    assert rules.upcoming(LAST_FIRE, 0) == ()


def test_the_fingerprint_names_what_moves_an_instant_and_nothing_else() -> None:
    plain = rules_of()
    same = rules_of(CatchUp(ALL), deadline=MINUTE)
    others = [
        rules_of(start=at("11:00:00")),
        rules_of(end=at("11:00:00")),
        FireRules(parse_cron("*/2 * * * *")),
    ]

    assert plain.fingerprint == same.fingerprint
    assert len({plain.fingerprint, *(rules.fingerprint for rules in others)}) == 4


@given(
    interval=st.integers(1, 200),
    outage=st.integers(0, 2000),
    mode=st.sampled_from(CatchUpMode),
    catch_up_limit=st.none() | st.integers(1, 30),
    window=st.none() | st.integers(1, 2000),
    deadline=st.none() | st.integers(0, 2000),
    step=st.integers(1, 50),
)
def test_every_due_instant_gets_one_verdict_and_steps_agree(
    interval: int,
    outage: int,
    mode: CatchUpMode,
    catch_up_limit: int | None,
    window: int | None,
    deadline: int | None,
    step: int,
) -> None:
    rules = FireRules(
        Every(timedelta(seconds=interval)),
        deadline=None if deadline is None else timedelta(seconds=deadline),
        catch_up=CatchUp(
            mode, catch_up_limit, None if window is None else timedelta(seconds=window)
        ),
    )
    now = LAST_FIRE + timedelta(seconds=outage, milliseconds=400)

    stepwise = plan_all(rules, LAST_FIRE, now, limit=step)

    assert stepwise == plan_all(rules, LAST_FIRE, now, limit=10_000)
    due = rules.schedule.between(LAST_FIRE, now, 10_000)
    assert [fire.at for fire in stepwise] == due
    long = bool(due) and now - due[0] > MINUTE
    enqueued = [fire for fire in stepwise if fire.wanted is Verdict.ENQUEUED]
    if long and mode is LATEST:
        assert len(enqueued) <= 1
    if long and mode is NONE:
        assert not enqueued
    if not long and deadline is None:
        assert len(enqueued) == len(due)
