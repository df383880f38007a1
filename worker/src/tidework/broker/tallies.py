"""Statistics as the scripts keep them: names of numbers, points, and lines of what is not in a
point yet (scripts/fragments/tallies.lua, points.lua).

The memory model keeps the same names; both are read here.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
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

Numbers = Counter[str]
"""Name to number, as in tallies.lua."""
Numbered = Mapping[int, Numbers]
"""The points of a task by the number of their minute, hour or day."""

_NUMBER = re.compile(r"([A-Za-z]\d*):(\d+)")
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
    rows: Sequence[Sequence[bytes]], tallies: bytes, step: Step, wanted: range
) -> dict[str, Numbered]:
    """Task to its points, of stored ones and of the lines that belong to them."""
    found: dict[str, dict[int, Numbers]] = defaultdict(lambda: defaultdict(Counter))
    for name, *points in rows:
        for point in points:
            text, _, words = point.decode().partition(" ")
            found[name.decode()][int(text)].update(_numbers_in(words))
    for line in tallies.decode().splitlines():
        minute, task, words = line.split(" ", 2)
        number = int(minute) // step.minutes
        if number in wanted:
            numbers = _numbers_in(words)
            is_beyond = task not in found and len(found) > MOST_TASKS
            found[OTHER_TASKS if is_beyond else task][number].update(numbers)
            found[ALL_TASKS][number].update(numbers)
    return dict(found)


def _numbers_in(words: str) -> dict[str, int]:
    return {name: int(number) for name, number in _NUMBER.findall(words)}


def totals_of(numbers: Numbers) -> Totals:
    """The names as the model has them."""
    counts = {field: numbers[name] for field, name in _COUNTS.items()}
    wait = Histogram(dict(_buckets(numbers, "w")), numbers["W"] / 1e3)
    return Totals(
        **counts, wait=wait, run=Histogram(dict(_buckets(numbers, "x")), numbers["X"] / 1e6)
    )


def _buckets(numbers: Numbers, letter: str) -> Iterator[tuple[int, int]]:
    for name, number in numbers.items():
        if name[0] == letter:
            yield int(name[1:]), number


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
    numbers: Numbers = Counter()
    for each in points.values():
        numbers.update(each)
    return totals_of(numbers)
