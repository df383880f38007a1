"""Time zones: which zone a name means, and how its clock runs.

For the schedule engine a zone is a row of segments, stretches of real time with one constant
offset. Where the wall clock of the next segment begins later than the last one ended lies a gap;
where it begins earlier, an overlap. Instants are aware datetimes in UTC; "wall" times are naive,
readings of the zone's clock; so the two cannot be mixed up. Both are on whole seconds.
The data is that of the PyPI package tzdata where it knows the name (so that every machine gives
the same answers), else the system's.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import import_module, resources
from zoneinfo import ZoneInfo

from tidework.errors import ScheduleError

# The years that the engine knows; outside of them nothing fires. Enough room is left to the ends
# of datetime's calendar for a search of decades on either side.
FIRST = datetime(1900, 1, 1, tzinfo=UTC)
LAST = datetime(9000, 1, 1, tzinfo=UTC)

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)

# Two readings of one clock, more than this apart in real time, cannot be out of order: offsets
# lie within a day on either side of UTC.
_MEMORY = 2 * _DAY

# Kubernetes' own rule for a part of a zone's name.
_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}\Z")
_MAX_NAME = 64

# They load, or fail to load in odd ways, but none of them is a zone that two machines agree on.
_NOT_ZONES = {
    "local": "it depends on the machine",
    "localtime": "it depends on the machine",
    "posixrules": "it is a template for other zones",
    "factory": "it stands for a machine without a time zone",
    "leapseconds": "it is a table of leap seconds",
}
_NOT_DIRECTORIES = {
    "right": "it counts leap seconds, which no clock here does",
    "posix": "only some systems have it",
}


@dataclass(frozen=True, slots=True)
class Segment:
    """Real time from ``start`` (inclusive) to ``end`` (exclusive) with one offset from UTC."""

    start: datetime
    end: datetime
    offset: timedelta

    @property
    def wall_start(self) -> datetime:
        return self.wall_at(self.start)

    @property
    def wall_end(self) -> datetime:
        return self.wall_at(self.end)

    def wall_at(self, instant: datetime) -> datetime:
        return (instant + self.offset).replace(tzinfo=None)

    def instant_of(self, wall: datetime) -> datetime:
        return (wall - self.offset).replace(tzinfo=UTC)


def load_zone(name: str) -> ZoneInfo:
    """The IANA zone of this name; ScheduleError with a hint if there is none.

    Names are case-sensitive and follow Kubernetes' rule for ``timeZone``.
    """
    _refuse_odd_names(name)
    return _load(name)


def tzdata_version() -> str:
    """The IANA release in use, such as ``2026f``; ``system`` without the package tzdata."""
    try:
        package = import_module("tzdata")
    except ModuleNotFoundError:
        return "system"
    return str(package.IANA_VERSION)


def segments_from(zone: str, moment: datetime) -> Iterator[Segment]:
    """The segment that holds ``moment`` and all after it, in order, up to LAST."""
    for year in range(moment.year, LAST.year):
        for segment in _segments_of(zone, year):
            if segment.end > moment:
                yield segment


def segments_back_from(zone: str, moment: datetime) -> Iterator[Segment]:
    """The segment that holds ``moment`` and all before it, the latest first, down to FIRST."""
    for year in range(moment.year, FIRST.year - 1, -1):
        for segment in reversed(_segments_of(zone, year)):
            if segment.start <= moment:
                yield segment


def high_water(zone: str, moment: datetime) -> datetime:
    """The latest wall time that the zone's clock has shown up to ``moment``, inclusive.

    It is the reading at ``moment`` except within an overlap, where the clock has been further.
    """
    marks = []
    for segment in segments_back_from(zone, moment):
        if segment.end < moment - _MEMORY:
            break
        marks.append(segment.wall_at(min(moment, segment.end - _SECOND)))
    return max(marks)


def first_reached(zone: str, wall: datetime) -> datetime | None:
    """The first instant at which the zone's clock shows ``wall`` or later; None after LAST.

    For a time inside a gap this is the end of the gap, for one inside an overlap the first pass.
    """
    earliest = wall.replace(tzinfo=UTC) - _DAY  # no offset reaches a day
    for segment in segments_from(zone, max(FIRST, earliest)):
        if segment.wall_end > wall:
            return max(segment.start, segment.instant_of(wall))
    return None


@lru_cache(maxsize=4096)
def _segments_of(zone: str, year: int) -> tuple[Segment, ...]:
    """The segments of one year in UTC; those at its ends are cut there.

    One look a day finds every change, because a zone never changes its offset twice within a
    day (the shortest stretch in the data is a week; a test watches that over all zones).
    """
    info = load_zone(zone)
    end_of_year = datetime(year + 1, 1, 1, tzinfo=UTC)
    start = look = datetime(year, 1, 1, tzinfo=UTC)
    offset = _offset(info, start)
    segments = []
    while look < end_of_year - _SECOND:
        before, look = look, min(look + _DAY, end_of_year - _SECOND)
        if _offset(info, look) != offset:
            change = _change(info, before, look)
            segments.append(Segment(start, change, offset))
            start, offset = change, _offset(info, look)
    segments.append(Segment(start, end_of_year, offset))
    return tuple(segments)


def _change(info: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first second with the offset of ``after``, given that ``before`` has another."""
    offset = _offset(info, after)
    while after - before > _SECOND:
        middle = before + (after - before) // 2 // _SECOND * _SECOND
        if _offset(info, middle) == offset:
            after = middle
        else:
            before = middle
    return after


def _offset(info: ZoneInfo, moment: datetime) -> timedelta:
    return moment.astimezone(info).replace(tzinfo=UTC) - moment


def _refuse_odd_names(name: str) -> None:
    """Refuse what Kubernetes refuses, and what loads but is no zone."""
    as_in = "use an IANA name such as Europe/Berlin or UTC"
    if not name:
        raise ScheduleError(name, "the time zone is empty", hint=as_in)
    lowered = name.lower()
    directory = lowered.split("/")[0]
    why = _NOT_ZONES.get(lowered) or _NOT_DIRECTORIES.get(directory)
    if why:
        raise ScheduleError(name, f"not a usable time zone: {why}", hint=as_in)
    parts = name.split("/")
    if len(name) > _MAX_NAME or not all(_PART.match(part) for part in parts):
        raise ScheduleError(name[:_MAX_NAME], "not the name of a time zone", hint=as_in)
    if any(part.startswith(".") for part in parts):
        raise ScheduleError(name, "a path instead of a time zone", hint=as_in)


@lru_cache(maxsize=1024)
def _load(name: str) -> ZoneInfo:
    if name in _packaged_names():
        file = resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
        with file.open("rb") as data:
            return ZoneInfo.from_file(data, key=name)
    try:
        return ZoneInfo(name)
    # KeyError: no such zone. ValueError: a file, but not of a zone. OSError: a directory.
    except (KeyError, ValueError, OSError) as error:
        raise ScheduleError(name, "unknown time zone", hint=_similar(name)) from error


@lru_cache(maxsize=1)
def _packaged_names() -> frozenset[str]:
    """The zones in the package tzdata; none without the package."""
    try:
        listing = resources.files("tzdata").joinpath("zones").read_text(encoding="ascii")
    except (ModuleNotFoundError, FileNotFoundError):
        return frozenset()
    return frozenset(listing.split()) - {"Factory"}


def _similar(name: str) -> str:
    """A hint that offers the known name most like ``name``."""
    by_lower = {known.lower(): known for known in sorted(_packaged_names())}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    if near:
        return f"did you mean {by_lower[near[0]]}?"
    return "use an IANA name such as Europe/Berlin or UTC"
