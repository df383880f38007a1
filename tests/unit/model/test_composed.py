"""Schedules made of others: one instant, several as one, one without excluded days."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

import pytest

from tidework.errors import ScheduleError
from tidework.model.schedules.composed import AnyOf, At, Without
from tidework.model.schedules.cron import DstPolicy, Every, Schedule, parse_cron
from tidework.model.schedules.cron_zone import FIRST, LAST
from tidework.model.schedules.exclusion import parse_exclusions

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


def without(schedule: Schedule, *days: str, zone: str = "UTC") -> Without:
    return Without(schedule, parse_exclusions(days), zone)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_an_instant() -> None:
    at = At(NOON)
    assert at.next(NOON - SECOND) == NOON
    assert at.next(NOON) is None
    assert at.latest(NOON, NOON - SECOND) == NOON
    assert at.latest(NOON - SECOND, FIRST) is at.latest(LAST, NOON) is None
    assert at.between(FIRST, LAST, 5) == [NOON]
    assert at.fingerprint == At(NOON).fingerprint != At(NOON + SECOND).fingerprint


@pytest.mark.parametrize("moment", [NOON.replace(microsecond=1), NOON.replace(tzinfo=None)])
def test_an_instant_is_a_whole_aware_second(moment: datetime) -> None:
    with pytest.raises((ScheduleError, ValueError), match=r"whole second|no time zone"):
        At(moment)


def test_any_of_several() -> None:
    both = AnyOf((parse_cron("0 */6 * * *"), parse_cron("0 */4 * * *"), At(NOON - DAY)))
    hours = [4, 6, 8, 12, 16, 18, 20]
    midnight = NOON.replace(hour=0)
    assert both.between(midnight, midnight + timedelta(hours=23), 20) == [
        midnight.replace(hour=hour) for hour in hours
    ]
    assert both.between(midnight, LAST, 3) == [midnight.replace(hour=hour) for hour in hours[:3]]
    assert both.next(midnight) == midnight.replace(hour=4)
    assert both.latest(midnight.replace(hour=19), midnight) == midnight.replace(hour=18)
    assert both.latest(midnight.replace(hour=3), midnight) is None


def test_the_order_of_several_means_nothing() -> None:
    one, two = parse_cron("0 6 * * *"), parse_cron("0 7 * * *")
    assert AnyOf((one, two)).fingerprint == AnyOf((two, one)).fingerprint
    assert AnyOf((one, one)).fingerprint != AnyOf((one, two)).fingerprint


def test_excluded_days_are_passed_over_at_once() -> None:
    """Every second, for sixty years: neither the fires nor the days are walked one by one."""
    schedule = without(Every(SECOND), "2026-01-01..2085-12-31")
    assert schedule.next(NOON) == utc("2086-01-01")
    assert schedule.latest(utc("2085-12-31"), FIRST) == utc("2026-01-01") - SECOND
    assert schedule.latest(utc("2085-12-31"), utc("2026-01-01")) is None
    assert schedule.between(utc("2026-01-01") - 2 * SECOND, LAST, 3) == [
        utc("2026-01-01") - SECOND,
        utc("2086-01-01"),
        utc("2086-01-01") + SECOND,
    ]
    assert schedule.between(NOON, NOON + 365 * DAY, 5) == []


def test_a_day_is_one_of_the_zone() -> None:
    """1 October in Shanghai begins and ends at 16:00 UTC."""
    schedule = without(Every(timedelta(hours=8)), "10-01", zone="Asia/Shanghai")
    fires = schedule.between(utc("2026-09-30"), utc("2026-10-02"), 9)
    assert fires == [utc("2026-09-30T08:00"), utc("2026-10-01T16:00"), utc("2026-10-02")]


@pytest.mark.parametrize("dst", DstPolicy)
def test_a_day_that_begins_after_a_gap(dst: DstPolicy) -> None:
    """Cairo skips midnight of 26 April 2024: the first instant of that day is 01:00."""
    cron = parse_cron("0,30 * * * *", time_zone="Africa/Cairo", dst=dst)
    schedule = without(cron, "2024-04-25", zone="Africa/Cairo")
    assert schedule.next(utc("2024-04-25T12:00")) == utc("2024-04-25T22:00")
    assert schedule.latest(utc("2024-04-25T21:59:59"), FIRST) == utc("2024-04-24T21:30")


def test_a_day_that_comes_back() -> None:
    """In St. John's the clock went back from 00:01 to 23:01 of the day before: what is excluded is
    what it shows."""
    zone = "America/St_Johns"
    cron = parse_cron("*/30 * * * *", time_zone=zone)
    change = utc("2006-10-29T02:31")  # 00:01 of 29 October
    around = (change - timedelta(hours=1), change + timedelta(hours=2))
    assert cron.between(*around, 9) == [
        utc("2006-10-29T02:00"),  # 23:30
        utc("2006-10-29T02:30"),  # 00:00
        utc("2006-10-29T03:00"),  # 23:30 again
        utc("2006-10-29T03:30"),  # 00:00 again
        utc("2006-10-29T04:00"),
        utc("2006-10-29T04:30"),
    ]
    after = without(cron, "2006-10-29", zone=zone)
    assert after.between(*around, 9) == [utc("2006-10-29T02:00"), utc("2006-10-29T03:00")]
    assert after.next(utc("2006-10-29T02:00")) == utc("2006-10-29T03:00")
    before = without(cron, "2006-10-28", zone=zone)
    assert before.between(*around, 2) == [utc("2006-10-29T02:30"), utc("2006-10-29T03:30")]
    assert before.latest(utc("2006-10-29T03:00"), FIRST) == utc("2006-10-29T02:30")


def test_fires_that_are_all_excluded_end_the_search() -> None:
    schedule = without(parse_cron("0 0 25 12 *"), "12-20..12-26")
    assert schedule.next(NOON) is None
    assert schedule.latest(NOON, FIRST) is None
    assert schedule.between(NOON, LAST, 1) == []
    dense = without(parse_cron("* * * * * *"), "0001-01-01..9999-12-31")
    assert dense.next(NOON) is dense.latest(NOON, FIRST) is None
    assert dense.between(NOON, LAST, 5) == []


def test_what_is_left_may_be_rare() -> None:
    schedule = without(parse_cron("0 0 * * MON"), "01-01..02-28", "03-01..12-31")
    assert schedule.next(NOON) == utc("2044-02-29")
    assert schedule.latest(NOON, FIRST) == utc("2016-02-29")


def test_values() -> None:
    for schedule in (At(NOON), AnyOf((At(NOON),)), without(Every(DAY), "12-25")):
        assert pickle.loads(pickle.dumps(schedule)) == schedule
        assert hash(schedule) == hash(pickle.loads(pickle.dumps(schedule)))


def test_fingerprints_tell_apart_what_fires_apart() -> None:
    plain = parse_cron("0 0 * * *")
    schedules: list[Schedule] = [
        plain,
        AnyOf((plain,)),
        without(plain, "12-25"),
        without(plain, "12-26"),
        without(plain, "2026-12-25"),
        without(plain, "12-25", zone="Asia/Shanghai"),
        At(NOON),
    ]
    assert len({schedule.fingerprint for schedule in schedules}) == len(schedules)
    assert without(plain, "12-25", "12-26").fingerprint == (
        without(plain, "12-25..12-26").fingerprint
    )


def test_limits_and_naive_datetimes_are_refused() -> None:
    naive = NOON.replace(tzinfo=None)
    for schedule in (At(NOON), AnyOf((Every(DAY),)), without(Every(DAY), "12-25")):
        with pytest.raises(ValueError, match="limit"):
            schedule.between(NOON, LAST, 0)
        with pytest.raises(ValueError, match="no time zone"):
            schedule.next(naive)
        with pytest.raises(ValueError, match="no time zone"):
            schedule.latest(naive, FIRST)
