"""The engine against a look at every minute, around the strangest changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cron_walker import MINUTE, Minutes, Plain
from tidework.errors import ScheduleError
from tidework.model.cron import CronSchedule, DstPolicy, parse_cron

# zone -> days (UTC) around which its clock jumps
CHANGES = {
    "Africa/Cairo": ["2024-04-25", "2024-10-31"],  # midnight is skipped
    "Africa/Casablanca": ["2025-02-23", "2025-04-06"],  # back for Ramadan
    "America/New_York": ["2026-03-08", "2026-11-01"],
    "America/Sao_Paulo": ["2018-02-18", "2018-11-04"],  # midnight is skipped, or comes twice
    "Antarctica/Troll": ["2026-03-29", "2026-10-25"],  # two hours
    "Asia/Beirut": ["2025-03-29", "2025-10-25"],
    "Asia/Kathmandu": ["1985-12-31"],  # a quarter of an hour, for good
    "Asia/Pyongyang": ["2015-08-14", "2018-05-04"],  # half an hour, and back
    "Australia/Lord_Howe": ["2026-04-04", "2026-10-03"],  # half an hour
    "Europe/Dublin": ["2026-03-29", "2026-10-25"],  # summer is standard time there
    "Europe/London": ["2026-03-29", "2026-10-25"],
    "Pacific/Apia": ["2011-09-24", "2011-12-30", "2012-04-01"],  # 30 December 2011 never was
    "Pacific/Chatham": ["2026-04-04", "2026-09-26"],  # 45 minutes off the hour
    "Pacific/Kwajalein": ["1993-08-21"],  # 21 August 1993 never was
}
WINDOWS = [(zone, day) for zone, days in CHANGES.items() for day in days]

EXPRESSIONS = [
    "30 2 * * *",
    "0 0 * * *",
    "59 23 * * *",
    "15,45 0-3 * * *",
    "0,20,40 2 * * *",
    "5/25 1,2 * * *",
    "0 0-23 * * *",
    "30 1 * * 0",
    "45 23 31 * 5,6",
    "0 9 * * 5",
    "0 0 30 * *",
    "0 */2 * * *",
    "*/20 2,3 * * *",
    "? 0 * * *",
    "45 * * * *",
    "*/31 * * * *",
]


@lru_cache(maxsize=64)
def minutes_around(zone: str, day: str) -> Minutes:
    middle = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return Minutes.of(zone, middle - timedelta(days=1), middle + timedelta(days=2))


def jump_of(minutes: Minutes) -> datetime:
    [(instant, _)] = minutes.jumps()
    return instant


@pytest.mark.parametrize("dst", DstPolicy)
@pytest.mark.parametrize(("zone", "day"), WINDOWS)
def test_every_minute_around_a_change(zone: str, day: str, dst: DstPolicy) -> None:
    """All fires forwards; the last one up to moments before, within and after what is repeated."""
    minutes = minutes_around(zone, day)
    jump = jump_of(minutes)
    moments = [jump + number * 10 * MINUTE for number in range(-1, 14)] + [minutes.end]
    for expression in EXPRESSIONS:
        schedule = parse_cron(expression, time_zone=zone, dst=dst)
        expected = minutes.fires(expression, once=dst is DstPolicy.ONCE)
        assert schedule.between(minutes.start, minutes.end, limit=10_000) == expected, expression
        for moment in moments:
            last = max((fire for fire in expected if fire <= moment), default=None)
            assert schedule.latest(moment, minutes.start) == last, (expression, moment)


def test_the_windows_hold_what_they_are_for() -> None:
    """One jump each, in both directions, from a quarter of an hour to a whole day."""
    jumps = [minutes_around(zone, day).jumps() for zone, day in WINDOWS]
    assert all(len(each) == 1 for each in jumps)
    sizes = {size for [(_, size)] in jumps}
    assert {timedelta(hours=1), timedelta(hours=-1), timedelta(hours=-2)} < sizes
    assert max(sizes) == timedelta(days=1)
    assert timedelta(minutes=15) in sizes


def element(low: int, high: int) -> st.SearchStrategy[str]:
    """One element of a list: ``*``, ``?``, ``N``, ``A-B``, each with or without a step."""
    value = st.integers(low, high)
    step = st.integers(1, high + 2)
    span = st.tuples(value, value).map(lambda ends: f"{min(ends)}-{max(ends)}")
    plain = st.one_of(value.map(str), span, st.sampled_from(["*", "?"]))
    return st.one_of(value.map(str), plain, st.builds("{}/{}".format, plain, step))


def field(low: int, high: int) -> st.SearchStrategy[str]:
    return st.lists(element(low, high), min_size=1, max_size=3).map(",".join)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Any expression of numbers, with days and months mostly open, so that something fires."""
    star = st.just("*")
    hours = st.one_of(field(0, 23), field(0, 4))  # the clock jumps at night
    fields = (
        field(0, 59),
        hours,
        star | star | field(1, 31),
        star | star | field(1, 12),
        star | star | field(0, 6),
    )
    return " ".join(draw(each) for each in fields)


def parsed(expression: str, zone: str, dst: DstPolicy) -> CronSchedule | None:
    """None for the one reason for which a generated expression may be refused."""
    try:
        return parse_cron(expression, time_zone=zone, dst=dst)
    except ScheduleError as error:
        if "no such date" not in error.reason:
            raise
        return None


@settings(max_examples=120)
@given(
    window=st.sampled_from(WINDOWS),
    expression=expressions(),
    dst=st.sampled_from(DstPolicy),
    lead=st.one_of(st.integers(-150, 150), st.integers(-1440, 1440)),
    late=st.timedeltas(timedelta(0), timedelta(minutes=2)),
)
def test_any_expression_around_a_change(
    window: tuple[str, str], expression: str, dst: DstPolicy, lead: int, late: timedelta
) -> None:
    """Forwards and backwards from any instant, most of them within hours of the jump."""
    zone, day = window
    minutes = minutes_around(zone, day)
    expected = minutes.fires(expression, once=dst is DstPolicy.ONCE)
    schedule = parsed(expression, zone, dst)
    if schedule is None:
        assert expected == []
        return
    moment = jump_of(minutes) + lead * MINUTE + late
    later = [fire for fire in expected if fire > moment]
    assert schedule.between(moment, minutes.end, limit=60) == later[:60]
    last = max((fire for fire in expected if fire <= moment), default=None)
    assert schedule.latest(moment, minutes.start) == last


@settings(max_examples=100)
@given(expression=expressions(), start=st.datetimes(datetime(1999, 1, 1), datetime(2099, 1, 1)))  # noqa: DTZ001
def test_any_expression_over_the_years(expression: str, start: datetime) -> None:
    """A day at a time, in UTC: what no window around a change reaches, leap years above all."""
    schedule = parsed(expression, "UTC", DstPolicy.ONCE)
    moment = start.replace(tzinfo=UTC, microsecond=0)
    plain = Plain(expression)
    midnight = moment.replace(hour=0, minute=0, second=0)
    last_minute = timedelta(hours=max(plain.hours), minutes=max(plain.minutes))
    first_minute = timedelta(hours=min(plain.hours), minutes=min(plain.minutes))
    forward = (midnight + timedelta(days=number) for number in range(1, 8 * 366 + 2))
    backward = (midnight - timedelta(days=number) for number in range(1, 8 * 366 + 2))
    next_day = next((day for day in forward if plain.matches_day(day)), None)
    last_day = next((day for day in backward if plain.matches_day(day)), None)
    if schedule is None:
        assert next_day is last_day is None
        return
    assert next_day is not None
    assert last_day is not None
    tomorrow = midnight + timedelta(days=1)
    assert schedule.next(tomorrow - MINUTE) == next_day + first_minute
    assert schedule.latest(midnight - timedelta(seconds=1), midnight - timedelta(days=9 * 366)) == (
        last_day + last_minute
    )
