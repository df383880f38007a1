"""Which day comes next, or came last, of those that an expression names. The only door to croniter.

croniter never sees the user's text, a zone or a time of day: it gets explicit values and naive
midnights, so that neither its grammar nor its reading of clocks is relied on. Another search can
stand in its place behind ``next_day`` and ``last_day``. Days that depend on the month are looked
for here, month by month. It is imported when a day is looked for: workers read documents without.
"""

from __future__ import annotations

import copy
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tidework.model.schedules.cron_parse import CronFields
from tidework.model.schedules.cron_special import SpecialDay

if TYPE_CHECKING:
    from croniter import croniter

_DAY = timedelta(days=1)

# A fifth Monday in February comes after 40 years at most, 29 February after eight.
_SEARCH_MONTHS = 12 * 41


class Dates(NamedTuple):
    """The part of an expression that names days: see CronFields."""

    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    day_or: bool
    special: tuple[SpecialDay, ...]

    @classmethod
    def of(cls, fields: CronFields) -> Dates:
        return cls(fields.days, fields.months, fields.weekdays, fields.day_or, fields.special)

    @property
    def is_every_day(self) -> bool:
        return len(self.months) == 12 and len(self.days) == 31 and len(self.weekdays) == 7

    @property
    def has_plain(self) -> bool:
        """Do days and weekdays name any day, the special ones aside?"""
        return (
            bool(self.days or self.weekdays) if self.day_or else bool(self.days and self.weekdays)
        )


@lru_cache(maxsize=16384)
def next_day(dates: Dates, after: date) -> date:
    """The first day strictly after ``after``; date.max if there is none."""
    if dates.is_every_day:
        return after + _DAY
    found = _next_plain(dates, after) if dates.has_plain else date.max
    return min(found, _next_special(dates, after)) if dates.special else found


@lru_cache(maxsize=16384)
def last_day(dates: Dates, until: date) -> date:
    """The last day at or before ``until``; date.min if there is none."""
    if dates.is_every_day:
        return until
    found = _last_plain(dates, until) if dates.has_plain else date.min
    return max(found, _last_special(dates, until)) if dates.special else found


def _next_plain(dates: Dates, after: date) -> date:
    start = datetime(after.year, after.month, after.day)
    try:
        found: datetime = _searcher(dates).get_next(datetime, start_time=start)
    except (OverflowError, ValueError):  # CroniterBadDateError is a ValueError
        return date.max
    return found.date()


def _last_plain(dates: Dates, until: date) -> date:
    # One second on, because croniter's prev is strictly before its start.
    start = datetime(until.year, until.month, until.day, second=1)
    try:
        found: datetime = _searcher(dates).get_prev(datetime, start_time=start)
    except (OverflowError, ValueError):  # CroniterBadDateError is a ValueError
        return date.min
    return found.date()


def _next_special(dates: Dates, after: date) -> date:
    year, month = after.year, after.month
    for _ in range(_SEARCH_MONTHS):
        found = min((day for day in _special_in(dates, year, month) if day > after), default=None)
        if found is not None:
            return found
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return date.max


def _last_special(dates: Dates, until: date) -> date:
    year, month = until.year, until.month
    for _ in range(_SEARCH_MONTHS):
        found = max((day for day in _special_in(dates, year, month) if day <= until), default=None)
        if found is not None:
            return found
        year, month = (year, month - 1) if month > 1 else (year - 1, 12)
    return date.min


def _special_in(dates: Dates, year: int, month: int) -> list[date]:
    if month not in dates.months:
        return []
    days = (each.day_in(year, month) for each in dates.special)
    return [date(year, month, day) for day in days if day is not None]


def _searcher(dates: Dates) -> croniter:
    # A copy, since a croniter carries its position in itself: callers may share a thread pool.
    return copy.copy(_prototype(dates._replace(special=())))


@lru_cache(maxsize=2048)
def _prototype(dates: Dates) -> croniter:
    """A croniter over midnights and explicit values: none of its grammar but lists and ``*``."""
    # Under OR an empty side names no day, and a full list must not become a star: croniter would
    # AND it. With one side alone there is nothing to join.
    joins = dates.day_or and bool(dates.days) and bool(dates.weekdays)
    text = " ".join(
        (
            "0 0",
            _values(dates.days, 0 if joins else 31),
            _values(dates.months, 12),
            _values(dates.weekdays, 0 if joins else 7),
        )
    )
    from croniter import croniter

    return croniter(text, 0.0, day_or=dates.day_or)


def _values(values: tuple[int, ...], full: int) -> str:
    """A list of values; ``*`` for all of them, which croniter searches faster, and for none."""
    return "*" if not values or len(values) == full else ",".join(map(str, values))
