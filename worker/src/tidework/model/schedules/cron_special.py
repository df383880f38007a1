"""Days that depend on the month: its last ones, the nearest weekday, the second Friday.

Written as in Quartz: ``L`` the last day, ``L-3`` three days before it, ``15W`` the weekday (Monday
to Friday) nearest to the 15th within its month, ``LW`` the last weekday, ``FRI#2`` the second
Friday, ``FRIL`` the last one. A month that lacks such a day is passed over.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from enum import StrEnum

# Days of the longest February, and so on.
LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

OF_MONTH = re.compile(r"L(?:-(?P<before>[0-9]+))?|(?P<near>[0-9]+|L)W")
OF_WEEK = re.compile(r"(?P<weekday>[0-9]+|[A-Z]{3})(?:#(?P<nth>[0-9]+)|L)")

_WEEK = 7
_SATURDAY, _SUNDAY = 6, 0


class SpecialKind(StrEnum):
    """What the number of a special day counts."""

    BEFORE_LAST = "L"  # days before the last day of the month, from 0
    NEAREST = "W"  # the day of the month to be near to; LAST_WEEKDAY: its last
    NTH = "#"  # which one of the weekday, from 1; LAST_ONE: the last


LAST_WEEKDAY = 0
LAST_ONE = 0


@dataclass(frozen=True, slots=True, order=True)
class SpecialDay:
    """One day of each month, or of some. ``weekday`` (0-6 from Sunday) is for NTH alone."""

    kind: SpecialKind
    number: int
    weekday: int = 0

    def __str__(self) -> str:
        if self.kind is SpecialKind.BEFORE_LAST:
            return f"L-{self.number}" if self.number else "L"
        if self.kind is SpecialKind.NEAREST:
            return f"{self.number or 'L'}W"
        return f"{self.weekday}#{self.number}" if self.number else f"{self.weekday}L"

    def may_be_in(self, month: int) -> bool:
        """Whether the month (1-12) has such a day in any year."""
        longest = LONGEST_MONTH[month - 1]
        if self.kind is SpecialKind.BEFORE_LAST:
            return self.number < longest
        return self.kind is SpecialKind.NTH or self.number <= longest

    def day_in(self, year: int, month: int) -> int | None:
        """The day of the month, None if this month has none."""
        first_from_monday, length = monthrange(year, month)
        first = (first_from_monday + 1) % _WEEK
        if self.kind is SpecialKind.BEFORE_LAST:
            day = length - self.number
        elif self.kind is SpecialKind.NEAREST:
            if self.number > length:
                return None
            day = _nearest(self.number or length, first, length)
        else:
            day = self._nth(first, length)
        return day if 1 <= day <= length else None

    def _nth(self, first: int, length: int) -> int:
        earliest = 1 + (self.weekday - first) % _WEEK
        which = self.number or (length - earliest) // _WEEK + 1
        return earliest + (which - 1) * _WEEK


def _nearest(day: int, first: int, length: int) -> int:
    """Monday to Friday, within the month: a Saturday the 1st becomes Monday the 3rd."""
    weekday = (first + day - 1) % _WEEK
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day
