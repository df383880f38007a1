"""The measured answers of Kubernetes' scheduler, under ``dst: Clock``, which is its rule.

402 curated cases and 2,000 random rows. Where robfig v3.0.1 is wrong by its own rule, the data
holds what a look at every minute gives.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.cron_data import CASES, DATA, RANDOM_ROWS, Case, go_duration
from tidework.errors import ScheduleError
from tidework.model.schedules.cron import DstPolicy, parse_cron
from tidework.model.schedules.schedule import Every, Schedule

# Refused on purpose, though robfig takes them.
ZONE_IN_THE_SCHEDULE = {"rf-next-25", "rf-next-26", "rf-next-27"}  # Kubernetes refuses it as well
IMPOSSIBLE_DATE = {"rf-next-43", "rf-next-44", "k8s-02"}  # they would never fire
NOT_AN_INTERVAL = {"every-04", "every-06", "every-07"}  # 500 ms, 0 s, -5 min: robfig makes it 1 s
REFUSED = ZONE_IN_THE_SCHEDULE | IMPOSSIBLE_DATE | NOT_AN_INTERVAL

EVERY = "@every "


def is_every(case: Case) -> bool:
    return case.schedule.startswith(EVERY)


def schedule_of(case: Case) -> Schedule:
    """``@every`` counts from the moment it is asked at: an Every anchored there."""
    if is_every(case):
        interval = go_duration(case.schedule.removeprefix(EVERY))
        return Every(interval, case.after.replace(microsecond=0))
    return parse_cron(case.schedule, time_zone=case.zone, dst=DstPolicy.CLOCK)


def mismatch(case: Case) -> str | None:
    """None if all fires come out, one ``next`` each, and ``latest`` finds each of them again."""
    schedule = schedule_of(case)
    moment = case.after
    for fire in case.fires:
        found = schedule.next(moment)
        if found != fire:
            return f"{case}: after {moment} came {found}, not {fire}"
        last = schedule.latest(fire + timedelta(seconds=1), moment)
        if last != fire:
            return f"{case}: the latest up to {fire} is {last}"
        moment = fire
    return None


def test_counts() -> None:
    assert len(CASES) == 402
    assert len(RANDOM_ROWS) == 2000
    assert sum(file.stat().st_size for file in DATA.glob("*.json")) < 300_000
    assert sum(map(is_every, CASES)) == 9
    assert sum(map(is_every, RANDOM_ROWS)) == 63
    assert {case.id for case in CASES} >= REFUSED
    assert len([case for case in CASES if not case.fires]) == len(IMPOSSIBLE_DATE)


@pytest.mark.parametrize("case", [case for case in CASES if case.id in REFUSED], ids=lambda c: c.id)
def test_refused_on_purpose(case: Case) -> None:
    with pytest.raises(ScheduleError):
        schedule_of(case)


def test_a_zone_in_the_schedule_is_told_to_move() -> None:
    """The three of the data fire as measured once the zone stands where it belongs."""
    for case in CASES:
        if case.id in ZONE_IN_THE_SCHEDULE:
            prefix, _, schedule = case.schedule.partition(" ")
            zone = prefix.partition("=")[2]
            moved = Case(case.id, schedule, zone, case.after, case.fires)
            assert mismatch(moved) is None


def test_curated_cases() -> None:
    checked = [case for case in CASES if case.id not in REFUSED]
    assert len(checked) == 393
    assert [found for case in checked if (found := mismatch(case))] == []


@pytest.mark.parametrize("part", range(4))
def test_random_rows(part: int) -> None:
    rows = RANDOM_ROWS[part::4]
    assert len(rows) == 500
    assert [found for case in rows if (found := mismatch(case))] == []
