"""The engine against a look at every minute, around the strangest changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cron_walker import MINUTE, Minutes, Plain
from tidework.errors import ScheduleError
from tidework.model.schedules.composed import AnyOf, Without
from tidework.model.schedules.cron import CronSchedule, DstPolicy, parse_cron
from tidework.model.schedules.exclusion import parse_exclusions

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
    "15 30 2 * * *",
    "*/20 30,59 1-3 * * ?",
    "0,45 0 0 30 * 5L",
    "*/30 * 2 * * *",
    "30 2 L,LW * *",
    "0 0 L-1 * 5#5",
    "30 1 31W,15W,1W * *",
]


# The fifth Monday of February, say, comes again after 28 years, and after 40 around 2100.
YEARS = 41


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


def field(low: int, high: int, special: st.SearchStrategy[str] | None = None) -> Fields:
    each = element(low, high) if special is None else element(low, high) | special
    return st.lists(each, min_size=1, max_size=3).map(",".join)


Fields = st.SearchStrategy[str]
special_days = st.one_of(
    st.integers(1, 30).map("L-{}".format),
    st.integers(1, 31).map("{}W".format),
    st.sampled_from(["L", "LW"]),
)
special_weekdays = st.integers(0, 6).flatmap(
    lambda day: st.sampled_from([f"{day}L", *(f"{day}#{number}" for number in range(1, 6))])
)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Any expression of numbers, with days and months mostly open, so that something fires."""
    star = st.just("*")
    hours = st.one_of(field(0, 23), field(0, 4))  # the clock jumps at night
    fields = (
        field(0, 59),
        hours,
        star | star | field(1, 31, special_days),
        star | star | field(1, 12),
        star | star | field(0, 6, special_weekdays),
    )
    seconds = f"{draw(field(0, 59))} " if draw(st.integers(0, 3)) == 0 else ""
    return seconds + " ".join(draw(each) for each in fields)


def parsed(expression: str, zone: str, dst: DstPolicy) -> CronSchedule | None:
    """None for the one reason for which a generated expression may be refused."""
    try:
        return parse_cron(expression, time_zone=zone, dst=dst)
    except ScheduleError as error:
        if "no such date" not in error.reason:
            raise
        return None


around_a_change = given(
    window=st.sampled_from(WINDOWS),
    expression=expressions(),
    dst=st.sampled_from(DstPolicy),
    lead=st.one_of(st.integers(-150, 150), st.integers(-1440, 1440)),
    late=st.timedeltas(timedelta(0), timedelta(minutes=2)),
)


@pytest.mark.thorough
@settings(max_examples=120)
@around_a_change
def test_any_expression_around_a_change(
    window: tuple[str, str], expression: str, dst: DstPolicy, lead: int, late: timedelta
) -> None:
    """Forwards and backwards from any instant, most of them within hours of the jump."""
    check_around_a_change(window, expression, dst, lead * MINUTE + late)


@pytest.mark.thorough
@pytest.mark.timeout(600)
@settings(max_examples=1200)
@around_a_change
def test_any_expression_around_a_change_at_length(
    window: tuple[str, str], expression: str, dst: DstPolicy, lead: int, late: timedelta
) -> None:
    check_around_a_change(window, expression, dst, lead * MINUTE + late)


def check_around_a_change(
    window: tuple[str, str], expression: str, dst: DstPolicy, lead: timedelta
) -> None:
    zone, day = window
    minutes = minutes_around(zone, day)
    expected = minutes.fires(expression, once=dst is DstPolicy.ONCE)
    schedule = parsed(expression, zone, dst)
    if schedule is None:
        assert expected == []
        return
    moment = max(minutes.start, jump_of(minutes) + lead)
    later = [fire for fire in expected if fire > moment]
    assert schedule.between(moment, minutes.end, limit=60) == later[:60]
    last = max((fire for fire in expected if fire <= moment), default=None)
    assert schedule.latest(moment, minutes.start) == last


@pytest.mark.thorough
@pytest.mark.timeout(600)
@settings(max_examples=600)
@given(
    window=st.sampled_from(WINDOWS),
    expressions=st.lists(expressions(), min_size=1, max_size=2),
    dst=st.sampled_from(DstPolicy),
    lead=st.integers(-1440, 1440),
)
def test_lists_without_a_day_around_a_change_at_length(
    window: tuple[str, str], expressions: list[str], dst: DstPolicy, lead: int
) -> None:
    """Two schedules as one, less the fires on the day of the change: forwards and backwards."""
    zone, day = window
    minutes = minutes_around(zone, day)
    info = ZoneInfo(zone)
    excluded = jump_of(minutes).astimezone(info).date()
    parsed_ones = [parsed(each, zone, dst) for each in expressions]
    schedules = tuple(each for each in parsed_ones if each is not None)
    fires = {
        fire
        for each in expressions
        for fire in minutes.fires(each, once=dst is DstPolicy.ONCE)
        if fire.astimezone(info).date() != excluded
    }
    schedule = Without(AnyOf(schedules), parse_exclusions([excluded.isoformat()]), zone)
    moment = max(minutes.start, jump_of(minutes) + lead * MINUTE)
    later = sorted(fire for fire in fires if fire > moment)
    assert schedule.between(moment, minutes.end, limit=90) == later[:90]
    following = schedule.next(moment)
    assert following == later[0] if later else following is None or following > minutes.end
    last = max((fire for fire in fires if fire <= moment), default=None)
    assert schedule.latest(moment, minutes.start) == last


@pytest.mark.thorough
@settings(max_examples=100)
@given(expression=expressions(), start=st.datetimes(datetime(1999, 1, 1), datetime(2099, 1, 1)))  # noqa: DTZ001
def test_any_expression_over_the_years(expression: str, start: datetime) -> None:
    """A day at a time, in UTC: what no window around a change reaches, leap years above all."""
    schedule = parsed(expression, "UTC", DstPolicy.ONCE)
    moment = start.replace(tzinfo=UTC, microsecond=0)
    plain = Plain(expression)
    midnight = moment.replace(hour=0, minute=0, second=0)
    first, last = (
        timedelta(hours=end(plain.hours), minutes=end(plain.minutes), seconds=end(plain.seconds))
        for end in (min, max)
    )
    forward = (midnight + timedelta(days=number) for number in range(1, YEARS * 366))
    backward = (midnight - timedelta(days=number) for number in range(1, YEARS * 366))
    next_day = next((day for day in forward if plain.matches_day(day)), None)
    last_day = next((day for day in backward if plain.matches_day(day)), None)
    if schedule is None:
        assert next_day is last_day is None
        return
    assert next_day is not None
    assert last_day is not None
    tomorrow = midnight + timedelta(days=1)
    assert schedule.next(tomorrow - timedelta(seconds=1)) == next_day + first
    before = midnight - timedelta(seconds=1)
    assert schedule.latest(before, midnight - timedelta(days=YEARS * 366)) == last_day + last
