"""Cron schedules: expression, zone and DST policy in, fire times out.

cron_parse reads the text, cron_wall knows which reading of a clock matches next or last, cron_zone
walks the zone. Two readings of the rules, chosen by ``dst`` and by the expression:
- by the clock: an instant fires if the zone's clock matches at it;
- once: a matching wall time fires at the first instant at which the clock shows it *or later*,
  which is the end of the gap for a skipped time and the first pass for a repeated one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice

from tidework.model.schedules.cron_parse import CronFields, parse_fields
from tidework.model.schedules.cron_wall import last_match, matches_between, next_match
from tidework.model.schedules.cron_zone import (
    FIRST,
    LAST,
    first_reached,
    high_water,
    load_zone,
    segments_back_from,
    segments_from,
    tzdata_version,
)
from tidework.model.schedules.schedule import (
    DstPolicy,
    Every,
    Schedule,
    fingerprint_of,
    fires_between,
    require_aware,
    require_limit,
)

__all__ = [
    "CronSchedule",
    "DstPolicy",
    "Every",
    "Schedule",
    "load_zone",
    "parse_cron",
    "tzdata_version",
]

_SECOND = timedelta(seconds=1)

# The calendar and the rules of a zone repeat after 400 years. The dated changes before the rules
# begin take up to 150 more: what has not fired by then never will.
_SEARCH = timedelta(days=366 * 550)


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """A cron expression in a zone. Made by ``parse_cron``; the spelling is no part of its identity.

    Nothing fires before 1900 or after 8999, whatever the expression says.
    """

    fields: CronFields
    time_zone: str
    dst: DstPolicy
    # As the user wrote it, for display.
    expression: str = field(compare=False)

    @property
    def fingerprint(self) -> str:
        fields = self.fields
        values = (fields.minutes, fields.hours, fields.days, fields.months, fields.weekdays)
        return fingerprint_of(
            "cron",
            *(",".join(map(str, each)) for each in values),
            "or" if fields.day_or else "and",
            self.time_zone,
            "once" if self._fires_once else "by the clock",
            # Only where they say something: fingerprints of before these existed hold.
            *(["seconds " + ",".join(map(str, fields.seconds))] if fields.seconds != (0,) else []),
            *(["special " + ",".join(map(str, fields.special))] if fields.special else []),
        )

    def next(self, after: datetime) -> datetime | None:
        start = _known(after, "after")
        if start == LAST:
            return None
        return self._next_once(start) if self._fires_once else self._next_by_clock(start)

    def latest(self, until: datetime, after: datetime) -> datetime | None:
        end = min(_known(until, "until"), LAST - _SECOND)
        start = _known(after, "after")
        if end <= start:
            return None
        fire = self._latest_once(end) if self._fires_once else self._latest_by_clock(end, start)
        return fire if fire is not None and fire > start else None

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        if self._fires_once:
            return fires_between(self, after, until, limit)
        require_limit(limit)
        start = _known(after, "after")
        end = min(_known(until, "until"), LAST - _SECOND)
        return list(islice(self._fires_by_clock(start, end), limit))

    @property
    def _fires_once(self) -> bool:
        return self.fields.fixed_time and self.dst is DstPolicy.ONCE

    def _next_by_clock(self, after: datetime) -> datetime | None:
        # Known while walking: ``found`` matches, and nothing between ``searched`` and it does.
        searched: datetime | None = None
        found: datetime | None = None
        for segment in segments_from(self.time_zone, after):
            if segment.start - after > _SEARCH:
                break
            wall = segment.wall_at(max(after, segment.start - _SECOND))
            if searched is None or found is None or not searched <= wall < found:
                searched, found = wall, next_match(self.fields, wall)
            if found == datetime.max:
                break
            if found < segment.wall_end:
                return segment.instant_of(found)
        return None

    def _latest_by_clock(self, until: datetime, after: datetime) -> datetime | None:
        # Known while walking: ``found`` matches, and nothing from it up to ``searched`` does.
        searched: datetime | None = None
        found: datetime | None = None
        for segment in segments_back_from(self.time_zone, until):
            if segment.end <= after or until - segment.end > _SEARCH:
                break
            wall = segment.wall_at(min(until, segment.end - _SECOND))
            if searched is None or found is None or not found <= wall <= searched:
                searched, found = wall, last_match(self.fields, wall)
            if found == datetime.min:
                break
            if found >= segment.wall_start:
                return segment.instant_of(found)
        return None

    def _fires_by_clock(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Every fire in (after, until]."""
        latest = after
        for segment in segments_from(self.time_zone, after):
            if segment.start > until or segment.start - latest > _SEARCH:
                break
            first = segment.wall_at(max(after + _SECOND, segment.start))
            last = segment.wall_at(min(until, segment.end - _SECOND))
            for midnight, since in matches_between(self.fields, first, last):
                latest = segment.instant_of(midnight) + since
                yield latest

    def _next_once(self, after: datetime) -> datetime | None:
        wall = next_match(self.fields, high_water(self.time_zone, after))
        return None if wall == datetime.max else first_reached(self.time_zone, wall)

    def _latest_once(self, until: datetime) -> datetime | None:
        wall = last_match(self.fields, high_water(self.time_zone, until))
        return None if wall == datetime.min else first_reached(self.time_zone, wall)


def parse_cron(
    expression: str,
    *,
    time_zone: str = "UTC",
    dst: DstPolicy = DstPolicy.ONCE,
    spread: str | None = None,
) -> CronSchedule:
    """A schedule from five or six fields or a descriptor such as ``@daily``.

    spread: ``namespace/name`` of its CronTask, which ``H`` is hashed from
    Raises ScheduleError with position and hint if the expression or the zone is refused.
    """
    fields = parse_fields(expression, spread=spread)
    load_zone(time_zone)
    return CronSchedule(fields, time_zone, dst, expression)


def _known(moment: datetime, name: str) -> datetime:
    """In UTC, within FIRST..LAST, and whole seconds, rounded down, since fires lie on those."""
    require_aware(moment, name)
    return min(max(moment, FIRST), LAST).astimezone(UTC).replace(microsecond=0)
