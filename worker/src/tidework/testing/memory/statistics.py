"""Statistics of the memory model."""

from __future__ import annotations

from datetime import datetime, timedelta

from tidework.broker.tallies import (
    LAST_DAY,
    LAST_HOUR,
    Numbered,
    series_of,
    statistics_of,
)
from tidework.clock import to_ms
from tidework.model.identity import QueueName
from tidework.model.statistics import (
    ALL_TASKS,
    OTHER_TASKS,
    Series,
    Step,
    TaskStatistics,
)
from tidework.testing.memory.calls import MemoryCalls


class MemoryStatistics(MemoryCalls):
    """The statistics of the MemoryBroker."""

    async def series(
        self,
        queue: QueueName,
        step: Step,
        *,
        task: str = ALL_TASKS,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Series:
        state = self._open(queue)
        length_ms = step.length // timedelta(milliseconds=1)
        newest = state.now // length_ms
        last = newest if until is None else min(newest, to_ms(until) // length_ms)
        first = max(newest - step.kept, last - step.kept) + 1
        if since is not None:
            first = max(first, to_ms(since) // length_ms)
        return series_of(task, step, state.points.of_task(step, task, range(first, last + 1)))

    async def statistics(self, queue: QueueName, task: str = "") -> tuple[TaskStatistics, ...]:
        found = statistics_of(self._latest(queue, *LAST_HOUR), self._latest(queue, *LAST_DAY))
        return tuple(each for each in found if task in ("", each.task))

    def _latest(self, queue: QueueName, step: Step, most: int) -> dict[str, Numbered]:
        state = self._open(queue)
        newest = state.now // (step.length // timedelta(milliseconds=1))
        rows = {
            task: state.points.of_task(step, task, range(newest - most + 1, newest + 1))
            for task in (*state.points.tasks, ALL_TASKS, OTHER_TASKS)
        }
        return {task: points for task, points in rows.items() if points}
