"""Statistics on Redis: what the scripts have counted, see statistics.lua."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tidework.broker.redis.calls import RedisCalls
from tidework.broker.redis.parts import StatisticsParts
from tidework.broker.redis.replies import reading
from tidework.broker.scripts import Call
from tidework.broker.tallies import (
    LAST_DAY,
    LAST_HOUR,
    Numbered,
    read_tallied,
    series_of,
    statistics_of,
)
from tidework.clock import to_ms
from tidework.model.identity import QueueName
from tidework.model.statistics import ALL_TASKS, Series, Step, TaskStatistics


class RedisStatistics(RedisCalls):
    """The statistics of the RedisBroker."""

    async def series(
        self,
        queue: QueueName,
        step: Step,
        *,
        task: str = ALL_TASKS,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Series:
        found = await self.transport.run(self._asked(queue, step, step.kept, task, since, until))
        with reading("the statistics", queue):
            return series_of(task, step, _read(found, step).get(task, {}))

    async def statistics(self, queue: QueueName, task: str = "") -> tuple[TaskStatistics, ...]:
        hour, day = await self.transport.run_all(
            [self._asked(queue, step, most, task) for step, most in (LAST_HOUR, LAST_DAY)]
        )
        with reading("the statistics", queue):
            found = statistics_of(
                _read(hour, Step.MINUTE, in_one=True), _read(day, Step.HOUR, in_one=True)
            )
        return tuple(each for each in found if task in ("", each.task))

    def _asked(
        self,
        queue: QueueName,
        step: Step,
        most: int,
        task: str,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Call:
        return self._call(
            "statistics",
            queue,
            task=task,
            step=step.letter,
            places=step.kept,
            minutes=step.minutes,
            since="" if since is None else to_ms(since),
            until_ms="" if until is None else to_ms(until),
            most=most,
        )


def _read(reply: Any, step: Step, *, in_one: bool = False) -> dict[str, Numbered]:
    parts = StatisticsParts.of(reply)
    wanted = range(parts.first, parts.last + 1)
    return read_tallied(parts.points, parts.tallies, step, wanted, in_one=in_one)
