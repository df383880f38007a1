"""Days on which nothing fires: single dates, stretches of dates, days of every year.

Written ``2026-12-25``, ``2026-12-24..2027-01-01``, ``12-25`` and ``12-24..01-01``; both ends are
included. A day is one of the zone's calendar, from its first instant to the next day's first.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from tidework.errors import ScheduleError
from tidework.model.schedules.cron_special import LONGEST_MONTH

_DAY = timedelta(days=1)
_DATE = r"(?:[0-9]{4}-)?[0-9]{2}-[0-9]{2}"
_ENTRY = re.compile(rf"({_DATE})(?:\.\.({_DATE}))?")
_HINT = "write days as 2026-12-25, 2026-12-24..2027-01-01, 12-25 (every year) or 12-24..01-01"

# Any leap year: days of every year are compared by its calendar.
_LEAP = 2000

_DayOfYear = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Exclusions:
    """stretches: sorted, apart from each other; of_year: every (month, day) excluded each year."""

    stretches: tuple[tuple[date, date], ...]
    of_year: frozenset[_DayOfYear]

    @property
    def is_empty(self) -> bool:
        return not (self.stretches or self.of_year)

    def __str__(self) -> str:
        dated = (f"{first}..{last}" for first, last in self.stretches)
        return ",".join((*dated, *(f"{month:02}-{day:02}" for month, day in sorted(self.of_year))))

    @property
    def last_dated(self) -> date:
        """After it only days of the year are excluded."""
        return self.stretches[-1][1] if self.stretches else date.min

    def around(self, day: date) -> tuple[date, date] | None:
        """First and last of the excluded days that ``day`` is one of; None if it is none.

        Others may adjoin: dated ones to those of every year, and the last of a year to the first.
        """
        place = bisect_right(self.stretches, (day, date.max)) - 1
        if place >= 0 and day <= self.stretches[place][1]:
            return self.stretches[place]
        if (day.month, day.day) not in self.of_year:
            return None
        return self._edge(day, -_DAY, (1, 1)), self._edge(day, _DAY, (12, 31))

    def _edge(self, day: date, step: timedelta, end: _DayOfYear) -> date:
        """The last excluded day of this year on the way."""
        while (day.month, day.day) != end:
            beyond = day + step
            if (beyond.month, beyond.day) not in self.of_year:
                break
            day = beyond
        return day


def parse_exclusions(entries: Iterable[str]) -> Exclusions:
    """Raises ScheduleError, whose expression is the entry, for the first one that is refused."""
    dated: list[tuple[date, date]] = []
    of_year: set[_DayOfYear] = set()
    for entry in entries:
        found = _ENTRY.fullmatch(entry)
        if found is None:
            raise ScheduleError(entry[:40], "this is neither a day nor a range", hint=_HINT)
        first, last = found[1], found[2] or found[1]
        if len(first) != len(last):
            reason = "one end has a year and the other has none"
            raise ScheduleError(entry, reason, hint="give a year to both or to neither")
        if len(first) == len("12-25"):
            of_year.update(_days_of_year(entry, first, last))
        else:
            dated.append(_stretch(entry, first, last))
    if len(of_year) == sum(LONGEST_MONTH):
        raise ScheduleError("exclude", "every day of the year is excluded", hint="leave some")
    return Exclusions(tuple(_merged(dated)), frozenset(of_year))


def _stretch(entry: str, first: str, last: str) -> tuple[date, date]:
    try:
        ends = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError as error:
        raise ScheduleError(entry, "there is no such day", hint=_HINT) from error
    if ends[0] > ends[1]:
        raise ScheduleError(entry, "it ends before it begins", hint="put the earlier day first")
    return ends


def _days_of_year(entry: str, first: str, last: str) -> Iterable[_DayOfYear]:
    """From one to the other, over the end of the year if that comes between."""
    try:
        day, end = (date.fromisoformat(f"{_LEAP}-{each}") for each in (first, last))
    except ValueError as error:
        raise ScheduleError(entry, "there is no such day", hint=_HINT) from error
    found = [(day.month, day.day)]
    while day != end:
        day = (day + _DAY).replace(year=_LEAP)
        found.append((day.month, day.day))
    return found


def _merged(stretches: list[tuple[date, date]]) -> list[tuple[date, date]]:
    """Sorted; those that overlap or touch are one."""
    found: list[tuple[date, date]] = []
    for first, last in sorted(stretches):
        if found and first <= _after(found[-1][1]):
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def _after(day: date) -> date:
    return day if day == date.max else day + _DAY
