"""Rings of points in the memory model, as scripts/fragments/points.lua keeps them."""

from __future__ import annotations

from datetime import timedelta

from tidework.broker.tallies import MINUTE_MS, Numbered, Numbers
from tidework.model.statistics import ALL_TASKS, MOST_TASKS, OTHER_TASKS, Step, bucket_of

QUIET = timedelta(days=30) // timedelta(minutes=1)


class Points:
    """points: by step, place in its ring and task: which minute, hour or day, and its numbers;
    tasks: by the last minute in which each was counted."""

    def __init__(self) -> None:
        self.points: dict[tuple[Step, int, str], tuple[int, Numbers]] = {}
        self.tasks: dict[str, int] = {}

    def tally(self, now: int, task: str, name: str, by: int = 1) -> None:
        """Count at ``now``, ms."""
        minute = now // MINUTE_MS
        for row in (self._admit(task, minute), ALL_TASKS):
            for step in Step:
                number = minute // step.minutes
                place = (step, number % step.kept, row)
                if self.points.get(place, (-1,))[0] != number:
                    self.points[place] = (number, {})
                numbers = self.points[place][1]
                numbers[name] = numbers.get(name, 0) + by

    def tally_claim(self, now: int, task: str, due_ms: int) -> None:
        """A job was claimed that was due since then."""
        wait_ms = max(0, now - due_ms)
        self.tally(now, task, f"w{bucket_of(wait_ms / 1000)}")
        self.tally(now, task, "W", wait_ms)

    def of_task(self, step: Step, task: str, wanted: range) -> Numbered:
        """Its points among those wanted."""
        found = {}
        for number in wanted:
            point = self.points.get((step, number % step.kept, task))
            if point is not None and point[0] == number:
                found[number] = point[1]
        return found

    def _admit(self, task: str, minute: int) -> str:
        if task not in self.tasks and len(self.tasks) >= MOST_TASKS:
            at, quietest = min((at, name) for name, at in self.tasks.items())
            if at > minute - QUIET:
                return OTHER_TASKS
            del self.tasks[quietest]
            self.points = {key: found for key, found in self.points.items() if key[2] != quietest}
        self.tasks[task] = minute
        return task
