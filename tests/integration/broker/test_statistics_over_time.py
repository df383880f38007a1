"""Statistics over days and weeks, by a clock that the test moves: on the model and on a server."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.property.broker_machine_clock import ClockedBroker
from tests.support.fixtures import redis_url, valkey
from tidework.broker.broker import Broker
from tidework.broker.connection.transport import AsyncTransport
from tidework.clock import ManualClock
from tidework.model.identity import QueueName
from tidework.model.lease import ExchangeRequest, QueueLimits, RunTimes
from tidework.model.statistics import ALL_TASKS, MOST_TASKS, OTHER_TASKS, Step
from tidework.testing.memory.broker import MemoryBroker

__all__ = ["redis_url", "valkey"]

START = datetime(2026, 12, 1, 12, 30, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class Queue:
    """A queue whose clock is set by the test."""

    def __init__(self, url: str) -> None:
        self.clock = ManualClock(START)
        self.name = QueueName(f"t-{secrets.token_hex(6)}", "q")
        limits = QueueLimits()
        self.broker: Broker = (
            ClockedBroker(AsyncTransport(url), limits, self.clock)
            if url
            else MemoryBroker(self.clock, limits)
        )
        self._sequence = 0

    async def run(self, *tasks: str) -> None:
        """An attempt of each ran."""
        self._sequence += 1
        served = {task: RunTimes(1, 0.5, {18: 1}) for task in tasks or ("send",)}
        request = ExchangeRequest("w", self._sequence, 0, served=served)
        await self.broker.exchange(self.name, request)

    async def points(self, step: Step, task: str = ALL_TASKS) -> dict[timedelta, int]:
        """How long ago each began, and the attempts in it."""
        series = await self.broker.series(self.name, step, task=task)
        now = self.clock.now()
        return {now - point.at: point.totals.run.count for point in series.points}

    async def last(self, task: str = ALL_TASKS) -> tuple[int, int]:
        """Attempts in the last hour and day."""
        found = {each.task: each for each in await self.broker.statistics(self.name)}
        if task not in found:
            return 0, 0
        return found[task].hour.run.count, found[task].day.run.count


@pytest.fixture(params=["memory", "valkey"])
async def queue(request: pytest.FixtureRequest) -> AsyncIterator[Queue]:
    url = "" if request.param == "memory" else request.getfixturevalue("valkey").url
    found = Queue(url)
    await found.broker.open_queue(found.name)
    yield found
    await found.broker.close()


async def test_minutes_make_hours_and_days(queue: Queue) -> None:
    for _ in range(4):
        await queue.run()
        await queue.run()
        queue.clock.advance(20 * MINUTE)

    # It is 13:50 now; 12:30, 12:50, 13:10 and 13:30 have two each.
    every = {timedelta(minutes=minutes): 2 for minutes in (80, 60, 40, 20)}
    assert await queue.points(Step.MINUTE) == every
    assert await queue.points(Step.HOUR) == {110 * MINUTE: 4, 50 * MINUTE: 4}
    assert await queue.points(Step.DAY) == {830 * MINUTE: 8}
    assert await queue.last() == (4, 8)


async def test_the_last_hour_and_day_move_on(queue: Queue) -> None:
    await queue.run()
    queue.clock.advance(59 * MINUTE)
    assert await queue.last() == (1, 1)
    queue.clock.advance(MINUTE)
    assert await queue.last() == (0, 1)
    queue.clock.advance(22 * HOUR)  # 11:30: the 24 hours since noon
    assert await queue.last() == (0, 1)
    queue.clock.advance(HOUR)
    assert await queue.last() == (0, 0)


@pytest.mark.parametrize("step", Step)
async def test_points_are_kept_for_so_many_turns(queue: Queue, step: Step) -> None:
    await queue.run()
    queue.clock.advance((step.kept - 1) * step.length)
    await queue.run()
    assert sum((await queue.points(step)).values()) == 2
    queue.clock.advance(step.length)
    await queue.run()  # in the place of the first
    assert sum((await queue.points(step)).values()) == 2
    assert len(await queue.points(step)) == 2


async def test_a_gap_has_no_points(queue: Queue) -> None:
    await queue.run()
    queue.clock.advance(10 * MINUTE)
    assert await queue.points(Step.MINUTE) == {10 * MINUTE: 1}
    await queue.run()
    assert await queue.points(Step.MINUTE) == {10 * MINUTE: 1, timedelta(0): 1}


async def test_a_clock_that_was_a_year_ahead_costs_a_place_at_most(queue: Queue) -> None:
    for _ in range(30):
        await queue.run()
        queue.clock.advance(MINUTE)
    year = 365 * DAY + 7 * MINUTE
    queue.clock.advance(year)
    for _ in range(5):
        await queue.run()
    queue.clock.jump(-year)
    await queue.run()

    found = await queue.points(Step.MINUTE)
    assert min(found) >= timedelta(0)
    assert sum(found.values()) >= 30
    assert (await queue.points(Step.DAY)) == {13 * HOUR: 31}
    assert (await queue.last())[1] == 31


async def test_a_clock_that_goes_to_and_fro_counts_each_attempt_once(queue: Queue) -> None:
    for _ in range(5):
        await queue.run()
        queue.clock.advance(MINUTE)
        await queue.run()
        queue.clock.jump(-MINUTE)
    queue.clock.advance(MINUTE)

    assert await queue.points(Step.MINUTE) == {MINUTE: 5, timedelta(0): 5}


async def test_a_task_that_had_nothing_for_a_month_makes_room(queue: Queue) -> None:
    await queue.run("old", *(f"task-{number}" for number in range(MOST_TASKS - 1)))
    for _ in range(10):  # more than is written down before it is added up
        await queue.run("new")
    assert await queue.last("new") == (0, 0)
    assert (await queue.last(OTHER_TASKS))[0] == 10

    queue.clock.advance(20 * DAY)
    for number in range(MOST_TASKS - 1):
        await queue.run(f"task-{number}")
    queue.clock.advance(11 * DAY)
    for _ in range(20):
        await queue.run("new")

    assert await queue.last("new") == (20, 20)
    assert await queue.points(Step.DAY, "old") == {}
    assert (await queue.points(Step.DAY, "task-0")).keys() == {
        31 * DAY + 12.5 * HOUR,
        11 * DAY + 12.5 * HOUR,
    }
