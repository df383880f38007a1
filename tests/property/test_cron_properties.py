"""What holds for every schedule, every zone and every instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidework.errors import ScheduleError
from tidework.model.schedules.composed import AnyOf, Without
from tidework.model.schedules.cron import DstPolicy, Every, Schedule, parse_cron
from tidework.model.schedules.cron_zone import FIRST, LAST, _packaged_names
from tidework.model.schedules.exclusion import parse_exclusions

pytestmark = pytest.mark.thorough

ALPHABET = "0123456789*?,-/ @#~()LWHRTZ=monjaeuvry+_\t\n\u00a0\u0661\U0001f552"

instants = st.datetimes(datetime(1901, 1, 1), datetime(8990, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
some_years = st.timedeltas(timedelta(0), timedelta(days=3 * 366))


def one_of(*fields: str) -> st.SearchStrategy[str]:
    return st.sampled_from(fields)


crons = st.builds(
    lambda fields, zone, dst: parse_cron(" ".join(fields), time_zone=zone, dst=dst),
    st.tuples(
        one_of("*", "*/7", "0", "30", "59", "0,30", "10-20/5"),
        one_of("*", "*/5", "0", "2", "23", "0-3", "1,13"),
        one_of("*", "*", "1", "29", "31", "*/2"),
        one_of("*", "*", "3", "12", "1-12/5"),
        one_of("*", "*", "0", "1-5", "*/3"),
    ),
    st.sampled_from(sorted(_packaged_names())),
    st.sampled_from(DstPolicy),
)
everies = st.builds(
    lambda seconds, anchor: Every(timedelta(seconds=seconds), anchor.replace(microsecond=0)),
    st.integers(1, 10**9),
    instants,
)
beyond_kubernetes = st.builds(
    lambda fields, zone: parse_cron(" ".join(fields), time_zone=zone),
    st.tuples(
        one_of("0", "30", "*/20", "*"),
        one_of("*", "*/7", "30", "0,59"),
        one_of("*", "*/5", "0", "1-3"),
        one_of("L", "1,L-2", "LW", "1W,31W", "?", "15"),
        one_of("*", "*", "2,3"),
        one_of("*", "*", "5L", "1#1,3#3", "0,5#2"),
    ),
    st.sampled_from(sorted(_packaged_names())),
)
excluded = st.lists(
    one_of("12-24..01-06", "05-01", "02-29", "2026-01-01..2031-12-31", "2030-03-01"), max_size=3
).map(parse_exclusions)
simple: st.SearchStrategy[Schedule] = st.one_of(crons, crons, everies, beyond_kubernetes)
composed: st.SearchStrategy[Schedule] = st.one_of(
    st.lists(simple, min_size=1, max_size=3).map(lambda each: AnyOf(tuple(each))),
    st.builds(
        Without, st.one_of(crons, beyond_kubernetes), excluded, one_of("UTC", "Asia/Tokyo")
    ).filter(lambda left: left.next(datetime(2000, 1, 1, tzinfo=UTC)) is not None),
)
schedules: st.SearchStrategy[Schedule] = st.one_of(simple, simple, composed)


@settings(max_examples=150)
@given(schedule=schedules, after=instants)
def test_next_is_the_first_of_the_later_ones(schedule: Schedule, after: datetime) -> None:
    fire = schedule.next(after)
    assert fire is not None
    assert fire > after
    assert fire.tzinfo is UTC
    assert fire.microsecond == 0
    assert schedule.next(fire - timedelta(seconds=1)) == fire
    assert schedule.latest(fire - timedelta(seconds=1), after) is None
    assert schedule.latest(fire, after) == fire


@settings(max_examples=75)
@given(schedule=schedules, after=instants)
def test_fires_rise_strictly_and_between_lists_them(schedule: Schedule, after: datetime) -> None:
    fires = []
    fire: datetime | None = after
    for _ in range(5):
        assert fire is not None
        fire = schedule.next(fire)
        assert fire is not None
        fires.append(fire)
    assert fires == sorted(set(fires))
    assert schedule.between(after, fires[-1], 5) == fires
    assert schedule.between(after, max(LAST, fires[-1]), 3) == fires[:3]
    assert [schedule.latest(each, FIRST) for each in fires] == fires


@settings(max_examples=150)
@given(schedule=schedules, after=instants, length=some_years)
def test_latest_is_followed_by_none(schedule: Schedule, after: datetime, length: timedelta) -> None:
    until = after + length
    latest = schedule.latest(until, after)
    following = schedule.next(after if latest is None else latest)
    assert following is not None
    assert following > until
    if latest is not None:
        assert after < latest <= until


@settings(max_examples=75)
@given(schedule=schedules, one=instants, two=instants)
def test_next_is_monotone(schedule: Schedule, one: datetime, two: datetime) -> None:
    early, late = schedule.next(min(one, two)), schedule.next(max(one, two))
    assert early is not None
    assert late is not None
    assert early <= late


almost = st.builds(
    lambda text, at, cut, piece: text[:at] + piece + text[at + cut :],
    one_of(
        "*/15 0-6,22 1,15 JAN-mar MON",
        "0 0 29 2 ?",
        "5/20 * * * 0-6/2",
        "@midnight",
        "*/9 H(0-29)/5 H L-3,15W * 5#2",
    ),
    st.integers(0, 28),
    st.integers(0, 3),
    st.text(ALPHABET, max_size=3),
)


@settings(max_examples=300)
@given(text=st.one_of(almost, almost, st.text(ALPHABET, max_size=30), st.text(max_size=30)))
def test_any_text_is_refused_with_a_place_or_fires(text: str) -> None:
    refused: ScheduleError | None = None
    schedule: Schedule | None = None
    try:
        schedule = parse_cron(text, spread="shop/nightly")
    except ScheduleError as error:
        refused = error
    if refused is not None:
        assert refused.hint
        assert refused.position is not None
        assert 0 <= refused.position <= len(text)
    else:
        assert schedule is not None
        assert schedule.next(datetime(2096, 3, 1, tzinfo=UTC)) is not None
