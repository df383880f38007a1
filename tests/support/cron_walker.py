"""Cron by brute force: look at every minute. The tests' reference, sharing no code with the engine.

Written from the rules in words: a schedule follows the clock, firing whenever the wall clock
matches; under ``Once`` a fixed-time schedule fires once for each wall time that it names, right
after the gap if that time is skipped, in the first pass if it comes twice. Clocks here jump from
one whole minute to another, so that the seconds of a minute share its fate.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)

# Longer than any overlap in the tests: who starts to walk that much earlier knows what was shown.
RUN_UP = timedelta(days=1)

SPECIAL = re.compile("[LW#]")

BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


@dataclass(frozen=True)
class Shown:
    """One real minute: what the zone's clock shows, and which wall minutes it shows or passes
    over for the first time (more than one after a gap, none in the second pass of an overlap)."""

    instant: datetime
    wall: datetime
    first_due: tuple[datetime, ...]


@dataclass(frozen=True)
class Minutes:
    """Every minute of a stretch of real time in a zone."""

    start: datetime
    end: datetime
    minutes: list[Shown]

    @classmethod
    def of(cls, zone: str, start: datetime, end: datetime) -> Minutes:
        info = ZoneInfo(zone)
        minutes: list[Shown] = []
        served: set[datetime] = set()
        instant = start - RUN_UP
        while instant <= end:
            wall = instant.astimezone(info).replace(tzinfo=None)
            due = {wall}
            skipped = minutes[-1].wall + MINUTE if minutes else wall
            while skipped < wall:
                due.add(skipped)
                skipped += MINUTE
            minutes.append(Shown(instant, wall, tuple(due - served)))
            served |= due
            instant += MINUTE
        return cls(start, end, minutes)

    def jumps(self) -> list[tuple[datetime, timedelta]]:
        """When the clock jumped, and by how much."""
        return [
            (after.instant, after.wall - before.wall - MINUTE)
            for before, after in pairwise(self.minutes)
            if after.wall - before.wall != MINUTE
        ]

    def fires(self, expression: str, *, once: bool) -> list[datetime]:
        """The fires in (start, end] of an expression as Plain reads it."""
        plain = Plain(expression)
        if once and plain.fixed_time:
            fires = {fire for minute in self.minutes for fire in plain.fires_once(minute)}
        else:
            shown = (minute for minute in self.minutes if plain.matches(minute.wall))
            fires = {fire for minute in shown for fire in plain.within(minute.instant)}
        return sorted(fire for fire in fires if self.start < fire <= self.end)


class Plain:
    """A cron expression, read in the plainest way: five or six fields of digits, ``*``, ``?``,
    ``-``, ``/``, ``,``, and the days ``L``, ``L-3``, ``LW``, ``15W``, ``5#2``, ``5L``."""

    def __init__(self, expression: str) -> None:
        fields = expression.split()
        self.seconds = self._values(fields[0], 0, 59) if len(fields) == 6 else {0}
        fields = fields[-5:]
        minutes, hours, days, months, weekdays = (
            self._values(field, *bounds) for field, bounds in zip(fields, BOUNDS, strict=True)
        )
        self.minutes, self.hours, self.days = minutes, hours, days
        self.months, self.weekdays = months, weekdays
        self.special_days, self.special_weekdays = (
            [element for element in field.split(",") if SPECIAL.search(element)]
            for field in (fields[2], fields[4])
        )
        self.day_and = any(
            element in ("*", "?", "*/1", "?/1")
            for field in (fields[2], fields[4])
            for element in field.split(",")
        )
        self.fixed_time = not any(mark in field for field in fields[:2] for mark in "*?")

    def within(self, minute: datetime) -> list[datetime]:
        return [minute + timedelta(seconds=second) for second in self.seconds]

    def fires_once(self, shown: Shown) -> list[datetime]:
        fires = []
        for due in shown.first_due:
            if self.matches(due):
                fires += self.within(shown.instant) if due == shown.wall else [shown.instant]
        return fires

    @staticmethod
    def _values(field: str, low: int, high: int) -> set[int]:
        values: set[int] = set()
        for element in field.split(","):
            if SPECIAL.search(element):
                continue
            span, slash, step = element.partition("/")
            first, hyphen, last = span.partition("-")
            if first in "*?":
                start, end = low, high
            else:
                start = int(first)
                end = int(last) if hyphen else high if slash else start
            values.update(range(start, end + 1, int(step or 1)))
        return values

    def matches(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and self.matches_day(wall)

    def matches_day(self, wall: datetime) -> bool:
        if wall.month not in self.months:
            return False
        day = wall.day in self.days or any(is_special_day(wall, e) for e in self.special_days)
        weekday = wall.isoweekday() % 7 in self.weekdays or any(
            is_special_weekday(wall, element) for element in self.special_weekdays
        )
        return (day and weekday) if self.day_and else (day or weekday)


def is_special_day(wall: datetime, element: str) -> bool:
    length = monthrange(wall.year, wall.month)[1]
    if not element.endswith("W"):
        return wall.day == length - int(element.removeprefix("L").removeprefix("-") or 0)
    wanted = length if element == "LW" else int(element[:-1])
    days = range(1, length + 1)
    working = [day for day in days if wall.replace(day=day).isoweekday() <= 5]
    return wanted <= length and wall.day == min(working, key=lambda day: abs(day - wanted))


def is_special_weekday(wall: datetime, element: str) -> bool:
    if wall.isoweekday() % 7 != int(element[0]):
        return False
    if element.endswith("L"):
        return wall.day + 7 > monthrange(wall.year, wall.month)[1]
    return (wall.day + 6) // 7 == int(element[2:])
