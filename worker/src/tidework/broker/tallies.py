"""Statistics as the scripts keep them: names of numbers, points, and lines of what is not in a
point yet (scripts/fragments/tallies.lua, points.lua).

The memory model keeps the same names; both are read here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta

from tidework.clock import from_ms
from tidework.model.statistics import (
    ALL_TASKS,
    MOST_TASKS,
    OTHER_TASKS,
    Histogram,
    Point,
    Series,
    Step,
    TaskStatistics,
    Totals,
)

MINUTE_MS = 60_000
LAST_HOUR = (Step.MINUTE, 60)
LAST_DAY = (Step.HOUR, 24)
"""Of which points the last hour and day are the sum."""

Numbers = dict[str, int]
"""Name to number, as in tallies.lua."""
Numbered = Mapping[int, Numbers]
"""The points of a task by the number of their minute, hour or day."""

_COUNTS = {
    "enqueued": "e",
    "succeeded": "s",
    "failed": "f",
    "retried": "r",
    "dead": "d",
    "lost": "l",
    "released": "g",
    "cancelled": "c",
}


def read_tallied(
    rows: Sequence[Sequence[bytes | None]],
    tallies: bytes,
    step: Step,
    wanted: range,
    *,
    in_one: bool = False,
) -> dict[str, Numbered]:
    """Task to its points, of stored ones and of the lines that belong to them.

    rows: a task, and what lies in the places of the points wanted; a point with another number is
          of another turn of its ring
    in_one: instead of the points their sum, as number 0
    """
    found: dict[str, dict[int, Numbers]] = defaultdict(lambda: defaultdict(dict))
    for name, *places in rows:
        task = (name or b"").decode()
        for number, place in zip(wanted, places, strict=True):
            text, _, words = (place or b"").decode().partition(" ")
            if text == str(number):
                _add(found[task][0 if in_one else number], words)
    for line in tallies.decode().splitlines():
        minute, task, words = line.split(" ", 2)
        number = int(minute) // step.minutes
        if number in wanted:
            if task not in found and len(found) > MOST_TASKS:
                task = OTHER_TASKS
            for row in (task, ALL_TASKS):
                _add(found[row][0 if in_one else number], words)
    return dict(found)


def _add(numbers: Numbers, words: str) -> None:
    for word in words.split():
        name, _, number = word.partition(":")
        numbers[name] = numbers.get(name, 0) + int(number)


def totals_of(numbers: Numbers) -> Totals:
    """The names as the model has them."""
    counts = {field: numbers.get(name, 0) for field, name in _COUNTS.items()}
    waits, runs = _buckets(numbers, "w"), _buckets(numbers, "x")
    return Totals(
        **counts,
        wait=Histogram(waits, numbers.get("W", 0) / 1e3),
        run=Histogram(runs, numbers.get("X", 0) / 1e6),
    )


def _buckets(numbers: Numbers, letter: str) -> dict[int, int]:
    return {int(name[1:]): number for name, number in numbers.items() if name[0] == letter}


def series_of(task: str, step: Step, points: Numbered) -> Series:
    """The points in their order."""
    length_ms = step.length // timedelta(milliseconds=1)
    return Series(
        task,
        step,
        tuple(Point(from_ms(n * length_ms), totals_of(points[n])) for n in sorted(points)),
    )


def statistics_of(
    hour: Mapping[str, Numbered], day: Mapping[str, Numbered]
) -> tuple[TaskStatistics, ...]:
    """Per task the sums of the points of its last hour and day; by task, ALL_TASKS first."""
    return tuple(
        TaskStatistics(task, _sum(hour.get(task, {})), _sum(day.get(task, {})))
        for task in sorted(hour.keys() | day.keys())
    )


def _sum(points: Numbered) -> Totals:
    numbers: Numbers = {}
    for each in points.values():
        for name, number in each.items():
            numbers[name] = numbers.get(name, 0) + number
    return totals_of(numbers)
