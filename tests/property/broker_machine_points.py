"""A server's points as they are once what it has counted lately is added to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tests.support.stored_queue import StoredQueue

RINGS = {"m": (1, 180), "h": (60, 72), "d": (1440, 400)}
"""Minutes of a point, and places."""


def text_of_point(number: int, numbers: Mapping[str, int]) -> str:
    """In an order, and without zeros."""
    words = (f"{name}:{found}" for name, found in sorted(numbers.items()) if found)
    return " ".join((str(number), *words))


def add_tallies(stored: StoredQueue) -> None:
    """Add each line to its points: one at a time, in their order."""
    points = {field: _read(text) for field, text in stored.points.items()}
    for line in stored.tallies.splitlines():
        minute, task, words = line.split(" ", 2)
        stored.point_tasks[task] = int(minute)
        for row in (task, "(all)"):
            for letter, (minutes, places) in RINGS.items():
                number = int(minute) // minutes
                field = f"{letter}{number % places}/{row}"
                if points.get(field, (-1,))[0] != number:
                    points[field] = (number, Counter())
                points[field][1].update(_read(f"0 {words}")[1])
    stored.tallies = ""
    stored.points = {field: text_of_point(*found) for field, found in points.items()}


def _read(text: str) -> tuple[int, Counter[str]]:
    number, *words = text.split()
    pairs = (word.partition(":") for word in words)
    return int(number), Counter({name: int(found) for name, _, found in pairs})
