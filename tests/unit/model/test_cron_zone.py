"""Time zones: which names are taken, whose data is used, and where their clocks jump."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from tidework.errors import ScheduleError
from tidework.model.schedules import cron_zone
from tidework.model.schedules.cron import load_zone, tzdata_version
from tidework.model.schedules.cron_zone import (
    FIRST,
    LAST,
    Segment,
    first_reached,
    high_water,
    segments_back_from,
    segments_from,
)

ALL_ZONES = sorted(cron_zone._packaged_names())


def refusal(name: str) -> ScheduleError:
    with pytest.raises(ScheduleError) as caught:
        load_zone(name)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        ("Local", "depends on the machine"),
        ("LOCAL", "depends on the machine"),
        ("localtime", "depends on the machine"),
        ("posixrules", "template"),
        ("Factory", "without a time zone"),
        ("right/UTC", "leap seconds"),
        ("right", "leap seconds"),
        ("posix/Europe/Berlin", "only some systems"),
        ("leapseconds", "leap seconds"),
        ("/usr/share/zoneinfo/UTC", "not the name"),
        ("../zoneinfo/UTC", "a path"),
        ("Europe/../UTC", "a path"),
        ("Europe//Berlin", "not the name"),
        ("Europe/Berlin/", "not the name"),
        ("Europe\\Berlin", "not the name"),
        ("Europe/Berlin ", "not the name"),
        ("UTC\n", "not the name"),
        ("UTC\0", "not the name"),
        ("Europe/Köln", "not the name"),
        ("A" * 15, "not the name"),
        ("a/" * 5000 + "a", "not the name"),
        ("Europe", "unknown"),
        ("Mars/Olympus", "unknown"),
        ("zone.tab", "unknown"),
        ("tzdata.zi", "unknown"),
        ("UTC+1", "unknown"),
    ],
)
def test_refused(name: str, reason: str) -> None:
    assert reason in refusal(name).reason


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("America/NewYork", "America/New_York"),
    ],
)
def test_a_near_name_is_offered(name: str, meant: str) -> None:
    assert refusal(name).hint == f"did you mean {meant}?"


def test_every_packaged_zone_loads_from_the_package() -> None:
    assert len(ALL_ZONES) > 590
    for name in ALL_ZONES:
        zone = load_zone(name)
        assert zone.key == name
        assert zone is not ZoneInfo(name)


def test_the_system_serves_a_name_that_the_package_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cron_zone, "_packaged_names", frozenset)
    cron_zone._load.cache_clear()
    try:
        assert load_zone("Europe/Berlin") is ZoneInfo("Europe/Berlin")
    finally:
        cron_zone._load.cache_clear()


def test_version_is_that_of_the_package() -> None:
    first_line = resources.files("tzdata").joinpath("zoneinfo", "tzdata.zi").read_text("utf-8")
    assert first_line.startswith(f"# version {tzdata_version()}\n")


def dated_changes(name: str) -> list[tuple[int, int, int]]:
    """Unix second, offset before, offset after: the dated changes in the zone's file (RFC 8536)."""
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    counts = struct.unpack(">6l", data[20:44])
    isut, isstd, leap, times, types, chars = counts
    second = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isut
    isut, isstd, leap, times, types, chars = struct.unpack(">6l", data[second + 20 : second + 44])
    body = second + 44
    moments = struct.unpack(f">{times}q", data[body : body + times * 8])
    indices = data[body + times * 8 : body + times * 9]
    table = body + times * 9
    offsets = [struct.unpack_from(">l", data, table + kind * 6)[0] for kind in range(types)]
    used = [offsets[0], *(offsets[index] for index in indices)]
    changes = zip(moments, pairwise(used), strict=True)
    return [(moment, before, after) for moment, (before, after) in changes if before != after]


def walked_changes(name: str, first: datetime, last: datetime) -> list[tuple[int, int, int]]:
    """The same from the segments."""
    changes = []
    for one, two in pairwise(segments_from(name, first)):
        if two.start > last:
            break
        assert one.end == two.start
        if one.offset != two.offset:
            offsets = (one.offset, two.offset)
            before, after = (round(offset.total_seconds()) for offset in offsets)
            changes.append((round(two.start.timestamp()), before, after))
    return changes


@pytest.mark.parametrize(
    "name", sorted({*ALL_ZONES[::12], "Asia/Kathmandu", "Pacific/Apia", "America/Noronha"})
)
def test_segments_are_those_of_the_file(name: str) -> None:
    """Every twelfth zone, from 1960 to the last dated change of its file."""
    first = datetime(1960, 1, 1, tzinfo=UTC)
    begin = round(first.timestamp())
    expected = [change for change in dated_changes(name) if change[0] > begin]
    last = datetime.fromtimestamp(expected[-1][0] if expected else begin, UTC)
    assert walked_changes(name, first, last) == expected


def test_no_zone_changes_twice_within_two_days() -> None:
    """What the walk relies on, which looks once a day."""
    shortest = min(
        two[0] - one[0] for name in ALL_ZONES for one, two in pairwise(dated_changes(name))
    )
    assert shortest > 2 * 86400


def test_backwards_is_forwards_reversed() -> None:
    start = datetime(2011, 6, 1, tzinfo=UTC)
    end = datetime(2013, 6, 1, tzinfo=UTC)
    forward: list[Segment] = []
    for segment in segments_from("Pacific/Apia", start):
        if segment.start > end:
            break
        forward.append(segment)
    backward: list[Segment] = []
    for segment in segments_back_from("Pacific/Apia", end):
        if segment.end <= start:
            break
        backward.append(segment)
    assert len(forward) > 3
    assert backward[::-1] == forward


def test_segments_end_where_the_known_years_end() -> None:
    assert next(segments_back_from("UTC", FIRST)).start == FIRST
    last = list(segments_from("America/New_York", LAST - timedelta(seconds=1)))
    assert [segment.end for segment in last] == [LAST]
    assert list(segments_from("UTC", LAST)) == []


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def wall(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("zone", "time", "instant"),
    [
        ("America/New_York", "2026-03-08T02:30", "2026-03-08T07:00"),  # in the gap: its end
        ("America/New_York", "2026-03-08T03:00", "2026-03-08T07:00"),
        ("America/New_York", "2026-11-01T01:30", "2026-11-01T05:30"),  # twice: the first pass
        ("America/New_York", "2026-11-01T02:00", "2026-11-01T07:00"),
        ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00"),  # a day that never was
    ],
)
def test_first_reached(zone: str, time: str, instant: str) -> None:
    assert first_reached(zone, wall(time)) == utc(instant)


@pytest.mark.parametrize(
    ("instant", "mark"),
    [
        ("2026-11-01T05:30", "2026-11-01T01:30"),
        ("2026-11-01T05:59:59", "2026-11-01T01:59:59"),
        ("2026-11-01T06:00", "2026-11-01T01:59:59"),  # the clock went back to 01:00
        ("2026-11-01T06:59:59", "2026-11-01T01:59:59"),
        ("2026-11-01T07:00", "2026-11-01T02:00"),
    ],
)
def test_high_water_does_not_go_back(instant: str, mark: str) -> None:
    assert high_water("America/New_York", utc(instant)) == wall(mark)
