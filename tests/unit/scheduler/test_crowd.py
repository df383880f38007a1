"""Ten thousand CronTasks due in one second: what is done, counted instead of timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.unit.scheduler.rig import QUEUE, START, Rig, at
from tidework.model.fire import FireRequest, Verdict
from tidework.model.identity import QueueName
from tidework.model.schedules.schedule import Every, Schedule
from tidework.scheduler.due import FireRules
from tidework.scheduler.spec import CronSpec

MANY = 10_000
MINUTELY = Every(timedelta(minutes=1))


@dataclass(frozen=True)
class CountedSchedule:
    """Counts how often anyone searches for a fire."""

    searches: Counter[str] = field(default_factory=Counter, compare=False)
    fingerprint: str = "minutely"

    def next(self, after: datetime) -> datetime | None:
        self.searches["next"] += 1
        return MINUTELY.next(after)

    def latest(self, until: datetime, after: datetime) -> datetime | None:
        self.searches["latest"] += 1
        return MINUTELY.latest(until, after)

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        self.searches["between"] += 1
        return MINUTELY.between(after, until, limit)


def crowd(schedule: Schedule) -> list[CronSpec]:
    return [
        CronSpec(
            uid=f"cron-{n}",
            name=f"cron-{n}",
            queue=QUEUE,
            task="tick",
            rules=FireRules(schedule),
            created=START,
        )
        for n in range(MANY)
    ]


async def test_a_crowded_second_is_decided_in_large_requests_before_any_search() -> None:
    schedule = CountedSchedule()
    rig = Rig(*crowd(schedule))
    await rig.settle()
    assert schedule.searches == {"next": MANY}
    requests: list[int] = []
    decided: list[str] = []

    async def decide(
        _queue: QueueName, _term: int, given: Sequence[FireRequest]
    ) -> tuple[Verdict, ...]:
        # At the latest request, only the fires of earlier rounds had their next one searched.
        requests.append(len(given))
        decided.extend(found.uid for found in given)
        return (Verdict.ENQUEUED,) * len(given)

    rig.memory.decide_fires = decide  # type: ignore[method-assign,assignment]
    rig.clock.advance(at("10:01:00") - rig.clock.now())

    rounds = 0
    while len(decided) < MANY:
        await rig.scheduler.tick()
        rounds += 1

    assert rounds == 5
    assert len(requests) == MANY / 250
    assert len(set(decided)) == MANY
    assert schedule.searches["next"] - MANY <= 200 * rounds
    assert schedule.searches.keys() == {"next"}


async def test_schedules_that_are_not_due_are_not_looked_at() -> None:
    schedule = CountedSchedule()
    rig = Rig(*crowd(schedule))
    await rig.settle()
    calls = len(rig.broker.calls)

    await rig.run_to("10:00:30")

    assert schedule.searches == {"next": MANY}
    assert set(rig.broker.calls[calls:]) <= {"lead", "gather"}
