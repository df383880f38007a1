"""A cron schedule as a value: its fires around jumps of the clock, its bounds, its identity."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO
from zoneinfo import ZoneInfo

import pytest

from tidework.errors import ScheduleError
from tidework.model.schedules import cron, cron_wall, cron_zone
from tidework.model.schedules.cron import CronSchedule, DstPolicy, Schedule, parse_cron
from tidework.model.schedules.cron_parse import CronFields

SECOND = timedelta(seconds=1)


def local(schedule: CronSchedule, after: str, count: int) -> list[str]:
    """The next fires as the zone's clock shows them, with the offset. ``after`` is in UTC."""
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    fires = schedule.between(moment, cron_zone.LAST, limit=count)
    return [f"{fire.astimezone(ZoneInfo(schedule.time_zone)):%m-%d %H:%M %Z}" for fire in fires]


@pytest.mark.parametrize(
    ("expression", "dst", "fires"),
    [
        ("30 2 * * *", "Once", ["03-08 03:00 EDT", "03-09 02:30 EDT"]),
        ("30 2 * * *", "Clock", ["03-09 02:30 EDT", "03-10 02:30 EDT"]),
        ("0,30 2 * * *", "Once", ["03-08 03:00 EDT", "03-09 02:00 EDT"]),  # one fire for both
        ("0 2,3 * * *", "Once", ["03-08 03:00 EDT", "03-09 02:00 EDT"]),
        ("30 1-3 * * *", "Once", ["03-08 01:30 EST", "03-08 03:00 EDT", "03-08 03:30 EDT"]),
        ("30 */2 * * *", "Once", ["03-08 00:30 EST", "03-08 04:30 EDT"]),  # a wildcard hour
        ("*/30 2 * * *", "Once", ["03-09 02:00 EDT", "03-09 02:30 EDT"]),  # a wildcard minute
        ("@daily", "Once", ["03-09 00:00 EDT"]),
    ],
)
def test_a_gap(expression: str, dst: str, fires: list[str]) -> None:
    schedule = parse_cron(expression, time_zone="America/New_York", dst=DstPolicy(dst))
    assert local(schedule, "2026-03-08T05:00", len(fires)) == fires


@pytest.mark.parametrize(
    ("expression", "dst", "fires"),
    [
        ("30 1 * * *", "Once", ["11-01 01:30 EDT", "11-02 01:30 EST"]),
        ("30 1 * * *", "Clock", ["11-01 01:30 EDT", "11-01 01:30 EST", "11-02 01:30 EST"]),
        ("0 1,2 * * *", "Once", ["11-01 01:00 EDT", "11-01 02:00 EST"]),
        ("30 * * * *", "Once", ["11-01 00:30 EDT", "11-01 01:30 EDT", "11-01 01:30 EST"]),
        ("30 1 1 11 *", "Clock", ["11-01 01:30 EDT", "11-01 01:30 EST", "11-01 01:30 EDT"]),
    ],
)
def test_an_overlap(expression: str, dst: str, fires: list[str]) -> None:
    schedule = parse_cron(expression, time_zone="America/New_York", dst=DstPolicy(dst))
    assert local(schedule, "2026-11-01T04:10", len(fires)) == fires


def test_no_repetition_when_asked_within_the_second_pass() -> None:
    """A start of the process between 01:00 and 01:30 EST must not repeat the fire of 01:30 EDT."""
    schedule = parse_cron("30 1 * * *", time_zone="America/New_York")
    assert local(schedule, "2026-11-01T06:10", 1) == ["11-02 01:30 EST"]


@pytest.mark.parametrize(
    ("expression", "dst", "fires"),
    [
        ("0 0 30 * *", "Once", ["12-31 00:00 +14", "01-30 00:00 +14"]),
        ("0 0 30 * *", "Clock", ["01-30 00:00 +14", "03-30 00:00 +14"]),
        ("0 9 * * FRI", "Once", ["12-31 00:00 +14", "01-06 09:00 +14"]),
        ("0 9 * * FRI", "Clock", ["01-06 09:00 +14", "01-13 09:00 +14"]),
    ],
)
def test_the_day_that_never_was(expression: str, dst: str, fires: list[str]) -> None:
    """Apia had no Friday, 30 December 2011; robfig never returns from these two."""
    schedule = parse_cron(expression, time_zone="Pacific/Apia", dst=DstPolicy(dst))
    assert local(schedule, "2011-12-24T00:00", 2) == fires


@pytest.mark.parametrize(
    ("expression", "fires"),
    [
        ("0 0 L * *", ["01-31", "02-28", "03-31", "04-30"]),
        ("0 0 L-2 2-4 *", ["02-26", "03-29", "04-28"]),
        ("0 0 LW * *", ["01-30", "02-27", "03-31", "04-30"]),  # 31 January is a Saturday
        ("0 0 1W 2-8 *", ["02-02", "03-02", "04-01", "05-01"]),  # 1 February is a Sunday
        ("0 0 31W * *", ["01-30", "03-31", "05-29", "07-31"]),  # no 31st, no fire
        ("0 0 * * FRI#2", ["01-09", "02-13", "03-13"]),
        ("0 0 * * 1#5", ["03-30", "06-29", "08-31"]),
        ("0 0 * * FRIL", ["01-30", "02-27", "03-27"]),
        ("0 0 1,L * *", ["01-31", "02-01", "02-28"]),
        ("0 0 L * FRI#1", ["01-02", "01-31", "02-06"]),  # either is enough
        ("0 0 15 * FRI#1", ["01-02", "01-15", "02-06"]),
    ],
)
def test_days_that_depend_on_the_month(expression: str, fires: list[str]) -> None:
    found = local(parse_cron(expression), "2026-01-01T12:00", len(fires))
    assert [fire.partition(" ")[0] for fire in found] == fires


def test_rare_special_days_are_found_both_ways() -> None:
    """A fifth Monday in February: 2044, 2072, and 40 years later, since 2100 has no leap day."""
    schedule = parse_cron("0 0 * 2 MON#5")
    years = [2044, 2072, 2112]
    fires = [datetime(year, 2, 29, tzinfo=UTC) for year in years]
    assert schedule.between(datetime(2026, 1, 1, tzinfo=UTC), cron_zone.LAST, 3) == fires
    assert schedule.latest(fires[2] - SECOND, cron_zone.FIRST) == fires[1]


def test_seconds_around_a_gap_and_an_overlap() -> None:
    """Under Once what a gap skips fires once in all; what an overlap repeats, in the first pass."""
    zone = "America/New_York"
    gap = parse_cron("10,50 30 2 * * *", time_zone=zone)
    after = datetime(2026, 3, 8, tzinfo=UTC)
    assert gap.between(after, after + timedelta(days=1), 5) == [datetime(2026, 3, 8, 7, tzinfo=UTC)]
    overlap = parse_cron("10,50 30 1 * * *", time_zone=zone)
    first = datetime(2026, 11, 1, 5, 30, 10, tzinfo=UTC)
    assert overlap.between(first - 60 * SECOND, first + timedelta(hours=20), 5) == [
        first,
        first + 40 * SECOND,
    ]


def test_many_fires_at_once_are_those_of_one_by_one() -> None:
    for expression in ("*/7 * * * * *", "* * * * *", "*/20 * L * MON#1"):
        for zone in ("UTC", "Australia/Lord_Howe", "America/New_York"):
            schedule = parse_cron(expression, time_zone=zone, dst=DstPolicy.CLOCK)
            after = datetime(2026, 10, 31, 23, 59, 58, tzinfo=UTC)
            fires = schedule.between(after, cron_zone.LAST, 700)
            one: datetime | None = after
            for fire in fires:
                assert one is not None
                one = schedule.next(one)
                assert one == fire


def test_a_leap_day_over_a_century_without_one() -> None:
    schedule = parse_cron("0 0 29 2 *")
    leap_day = datetime(2096, 2, 29, tzinfo=UTC)
    assert schedule.next(leap_day) == datetime(2104, 2, 29, tzinfo=UTC)
    assert schedule.latest(datetime(2104, 2, 28, tzinfo=UTC), cron_zone.FIRST) == leap_day


ASKS: list[Callable[[Schedule, datetime], object]] = [
    lambda schedule, moment: schedule.next(moment),
    lambda schedule, moment: schedule.latest(moment, cron_zone.FIRST),
    lambda schedule, moment: schedule.latest(cron_zone.LAST, moment),
    lambda schedule, moment: schedule.between(moment, cron_zone.LAST, 1),
    lambda schedule, moment: schedule.between(cron_zone.FIRST, moment, 1),
]


@pytest.mark.parametrize("ask", ASKS)
def test_a_naive_datetime_is_refused(ask: Callable[[Schedule, datetime], object]) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        ask(parse_cron("* * * * *"), datetime(2026, 1, 1))  # noqa: DTZ001


def test_any_zone_is_taken_and_utc_given() -> None:
    schedule = parse_cron("0 12 * * *", time_zone="Europe/Berlin")
    after = datetime(2026, 7, 1, 3, 0, 0, 1, tzinfo=ZoneInfo("America/New_York"))
    fire = schedule.next(after)
    assert fire == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert fire is not None
    assert fire.tzinfo is UTC


def test_ranges_open_at_the_left_and_closed_at_the_right() -> None:
    schedule = parse_cron("*/10 * * * *")
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    ten = noon + timedelta(minutes=10)
    tick = timedelta(microseconds=1)
    assert schedule.next(noon) == ten
    assert schedule.next(noon - tick) == noon
    assert schedule.latest(ten, noon) == ten
    assert schedule.latest(ten - tick, noon) is None
    assert schedule.latest(ten - tick, noon - tick) == noon
    assert schedule.latest(noon, noon) is None
    assert schedule.latest(noon, ten) is None
    assert schedule.between(noon, ten, 5) == [ten]
    assert schedule.between(noon - tick, ten, 5) == [noon, ten]
    assert schedule.between(noon - tick, ten, 1) == [noon]
    assert schedule.between(ten, noon, 5) == []
    with pytest.raises(ValueError, match="limit"):
        schedule.between(noon, ten, 0)


@pytest.mark.parametrize("expression", ["* * * * *", "30 2 * * *", "0 0 29 2 *"])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/New_York"])
def test_the_ends_of_the_calendar(zone: str, expression: str) -> None:
    schedule = parse_cron(expression, time_zone=zone)
    begin = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    end = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))
    first = schedule.next(begin)
    assert first is not None
    assert first > cron_zone.FIRST
    last = schedule.latest(end, begin)
    assert last is not None
    assert last < cron_zone.LAST
    assert schedule.next(last) is None
    assert schedule.next(end) is None
    assert schedule.latest(first, begin) == first
    assert schedule.latest(first - SECOND, begin) is None
    assert schedule.between(last, end, 5) == []


@pytest.mark.parametrize("dst", DstPolicy)
@pytest.mark.parametrize("expression", ["* * * * *", "0 0 * * *"])
def test_the_latest_is_found_without_walking(
    monkeypatch: pytest.MonkeyPatch, expression: str, dst: DstPolicy
) -> None:
    """A range of 126 years, with up to 66 million fires, costs one search."""
    searches: list[datetime] = []
    search = cron_wall.last_match

    def counted(fields: CronFields, wall: datetime) -> datetime:
        searches.append(wall)
        return search(fields, wall)

    monkeypatch.setattr(cron, "last_match", counted)
    monkeypatch.setattr(cron, "next_match", None)
    schedule = parse_cron(expression, time_zone="Europe/London", dst=dst)
    noon = datetime(2026, 1, 1, tzinfo=UTC)
    assert schedule.latest(noon, cron_zone.FIRST) == noon
    assert len(searches) == 1


def always_in_a_gap() -> ZoneInfo:
    """A zone that skips 02:00-03:00 on each 1 March for ever (RFC 8536, footer only)."""
    header = b"TZif2" + bytes(15)
    empty = header + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + bytes(6) + b"STD\0"
    footer = b"\nSTD0DST,J60/2,J300/3\n"
    return ZoneInfo.from_file(BytesIO(empty + empty + footer), key="Test/Gap")


def test_a_schedule_that_only_gaps_name_never_fires(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search has an end even where every single match is skipped."""
    zone = always_in_a_gap()
    monkeypatch.setattr(cron_zone, "load_zone", lambda name: zone)
    fields = parse_cron("30 2 1 3 *").fields
    now = datetime(2026, 6, 1, tzinfo=UTC)
    clock = CronSchedule(fields, "Test/Gap", DstPolicy.CLOCK, "")
    assert clock.next(now) is None
    assert clock.latest(now.replace(year=8000), cron_zone.FIRST) is None
    once = CronSchedule(fields, "Test/Gap", DstPolicy.ONCE, "")
    assert once.next(now) == datetime(2027, 3, 1, 2, tzinfo=UTC)


def test_a_value() -> None:
    schedule = parse_cron("0  9 * * mon-FRI", time_zone="Europe/Berlin")
    same = parse_cron("0 9 * * 1-5", time_zone="Europe/Berlin")
    assert schedule == same
    assert hash(schedule) == hash(same)
    assert schedule.fingerprint == same.fingerprint
    assert schedule.expression == "0  9 * * mon-FRI"
    assert pickle.loads(pickle.dumps(schedule)) == schedule
    with pytest.raises(AttributeError):
        schedule.time_zone = "UTC"  # type: ignore[misc]


def test_fingerprints_do_not_change() -> None:
    """They are stored: a new release that computed others would reset every schedule."""
    assert parse_cron("0 9 * * 1-5", time_zone="Europe/Berlin").fingerprint == "9bfc686a1f2308ee"
    assert parse_cron("@hourly", dst=DstPolicy.CLOCK).fingerprint == "3c0e82db3d57d0f0"


def test_fingerprints_tell_apart_what_fires_apart() -> None:
    different = [
        parse_cron("30 2 1 * *"),
        parse_cron("31 2 1 * *"),
        parse_cron("30 2 2 * *"),
        parse_cron("30 2 * 1 *"),
        parse_cron("30 2 * * 1"),
        parse_cron("30 2 1 * 1"),
        parse_cron("30 2 1 * *", time_zone="Europe/London"),
        parse_cron("30 2 1 * *", dst=DstPolicy.CLOCK),
        parse_cron("*/30 2 1 * *"),
        parse_cron("30 30 2 1 * *"),
        parse_cron("30 2 1,L * *"),
        parse_cron("30 2 1,LW * *"),
        parse_cron("30 2 1,L-1 * *"),
        parse_cron("30 2 * * 1#1"),
        parse_cron("30 2 * * 1L"),
    ]
    assert len({schedule.fingerprint for schedule in different}) == len(different)


def test_a_zero_for_seconds_says_nothing_more() -> None:
    five, six = parse_cron("30 2 1 * *"), parse_cron("0 30 2 1 * *")
    assert five == six
    assert five.fingerprint == six.fingerprint


def test_the_policy_does_not_count_where_it_changes_nothing() -> None:
    once, clock = (parse_cron("*/5 * * * *", dst=dst) for dst in DstPolicy)
    assert once.fingerprint == clock.fingerprint


def test_the_zone_is_checked_at_once() -> None:
    with pytest.raises(ScheduleError, match="did you mean Europe/Berlin"):
        parse_cron("0 9 * * *", time_zone="Europe/Berln")


def test_both_kinds_are_schedules() -> None:
    schedules: list[Schedule] = [
        parse_cron("* * * * *"),
        cron.Every(timedelta(minutes=1)),
    ]
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    answers = {(s.next(noon), s.latest(noon, cron_zone.FIRST)) for s in schedules}
    assert answers == {(noon + timedelta(minutes=1), noon)}
