"""Schedules beside cron and intervals: one instant, several schedules as one, one without days.

They keep the promises of Schedule (schedule.py); a fire that several parts name is one fire.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import count, islice

from tidework.errors import ScheduleError
from tidework.model.schedules.cron_zone import load_zone, segments_back_from, segments_from
from tidework.model.schedules.exclusion import Exclusions
from tidework.model.schedules.schedule import (
    Schedule,
    fingerprint_of,
    fires_between,
    require_aware,
    require_limit,
)

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)

# Every date of the calendar comes on every weekday within so many years; what falls on excluded
# days for longer always does. Intervals of years are given so many fires.
_YEARS = 41
_PASSED_OVER = 100

# No clock was ever set back by more than a day: from within a stretch, the days before it do not
# come back.
_OUT_OF_REACH = 4 * _DAY


@dataclass(frozen=True, slots=True)
class At:
    """Fires once. Raises ScheduleError for an instant that is not on a whole second."""

    instant: datetime

    def __post_init__(self) -> None:
        require_aware(self.instant, "the instant")
        object.__setattr__(self, "instant", self.instant.astimezone(UTC))
        if self.instant.microsecond:
            text = self.instant.isoformat()
            raise ScheduleError(text, "not on a whole second", hint="drop the fraction")

    @property
    def fingerprint(self) -> str:
        return fingerprint_of("at", self.instant.isoformat())

    def next(self, after: datetime) -> datetime | None:
        require_aware(after, "after")
        return self.instant if after < self.instant else None

    def latest(self, until: datetime, after: datetime) -> datetime | None:
        require_aware(until, "until")
        require_aware(after, "after")
        return self.instant if after < self.instant <= until else None

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        return fires_between(self, after, until, limit)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Fires whenever one of its schedules does."""

    schedules: tuple[Schedule, ...]

    @property
    def fingerprint(self) -> str:
        return fingerprint_of("any of", *sorted({each.fingerprint for each in self.schedules}))

    def next(self, after: datetime) -> datetime | None:
        found = (each.next(after) for each in self.schedules)
        return min((fire for fire in found if fire is not None), default=None)

    def latest(self, until: datetime, after: datetime) -> datetime | None:
        found = (each.latest(until, after) for each in self.schedules)
        return max((fire for fire in found if fire is not None), default=None)

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        rows = [each.between(after, until, limit) for each in self.schedules]
        return list(islice(_each_once(heapq.merge(*rows)), limit))


@dataclass(frozen=True, slots=True)
class Without:
    """A schedule, less its fires on excluded days: those that the zone's clock shows then."""

    schedule: Schedule
    exclusions: Exclusions
    time_zone: str

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(
            "without", self.schedule.fingerprint, str(self.exclusions), self.time_zone
        )

    def next(self, after: datetime) -> datetime | None:
        hopeless = max(after.year, self.exclusions.last_dated.year) + _YEARS
        for passed in count():
            fire = self.schedule.next(after)
            if fire is None or (fire.year > hopeless and passed > _PASSED_OVER):
                return None
            days = self.exclusions.around(self._day(fire))
            if days is None:
                return fire
            after = max(fire, self._end(days, fire) - _SECOND)
        return None

    def latest(self, until: datetime, after: datetime) -> datetime | None:
        dated = self.exclusions.stretches
        hopeless = min(until.year, dated[0][0].year if dated else until.year) - _YEARS
        for passed in count():
            fire = self.schedule.latest(until, after)
            if fire is None or (fire.year < hopeless and passed > _PASSED_OVER):
                return None
            days = self.exclusions.around(self._day(fire))
            if days is None:
                return fire
            until = min(fire, self._begin(days, fire)) - _SECOND
        return None

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        require_limit(limit)
        found: list[datetime] = []
        while len(found) < limit:
            wanted = limit - len(found)
            fires = self.schedule.between(after, until, wanted)
            found += [fire for fire in fires if self.exclusions.around(self._day(fire)) is None]
            if len(fires) < wanted:
                break
            after = fires[-1]
            if self.exclusions.around(self._day(after)) is not None:
                # Not through an excluded stretch fire by fire.
                following = self.next(after)
                if following is None or following > until:
                    break
                after = following - _SECOND
        return found

    def _day(self, fire: datetime) -> date:
        return fire.astimezone(load_zone(self.time_zone)).date()

    def _end(self, days: tuple[date, date], fire: datetime) -> datetime:
        """An instant up to which, from ``fire`` on, the clock shows nothing but these days."""
        first, last = days
        day = self._day(fire)
        if day - first >= _OUT_OF_REACH and last - day >= _OUT_OF_REACH:
            return _midnight(last - _DAY).replace(tzinfo=UTC)
        # No further than the clock runs evenly: where it jumps, another day may come back.
        segment = next(segments_from(self.time_zone, fire))
        if last >= segment.wall_end.date():
            return segment.end
        return min(segment.end, segment.instant_of(_midnight(last + _DAY)))

    def _begin(self, days: tuple[date, date], fire: datetime) -> datetime:
        """Where the stretch before a fire begins: ``_end`` backwards."""
        first, last = days
        day = self._day(fire)
        if day - first >= _OUT_OF_REACH and last - day >= _OUT_OF_REACH:
            return _midnight(first + 2 * _DAY).replace(tzinfo=UTC)
        segment = next(segments_back_from(self.time_zone, fire))
        return max(segment.start, segment.instant_of(max(_midnight(first), segment.wall_start)))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min)


def _each_once(fires: Iterator[datetime]) -> Iterator[datetime]:
    last: datetime | None = None
    for fire in fires:
        if fire != last:
            yield fire
        last = fire
