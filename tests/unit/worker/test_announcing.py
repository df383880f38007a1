"""What a worker says of its application: to Redis, once an hour, and in its log."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.logs import events
from tests.unit.worker.consumers import Bench
from tidework.clock import ManualClock
from tidework.errors import BrokerUnavailableError
from tidework.model.identity import QueueName
from tidework.model.lease import ClaimedJob
from tidework.model.outcome import Outcome
from tidework.model.task import TaskSpec
from tidework.testing.memory.broker import MemoryBroker
from tidework.worker.announcing import MOST_TASKS, Announcing, warn_of_other_queues

ONE, TWO = QueueName("test", "one"), QueueName("test", "two")


def specs_of(*queues: str) -> dict[str, TaskSpec]:
    return {f"t{i}": TaskSpec(f"t{i}", queue) for i, queue in enumerate(queues)}


class Counting(MemoryBroker):
    """Notes what is announced; fails as often as ``failures`` says."""

    def __init__(self) -> None:
        super().__init__()
        self.announced_to: list[QueueName] = []
        self.failures = 0

    async def announce(self, queue: QueueName, version: str, tasks: Sequence[str]) -> int:
        if self.failures:
            self.failures -= 1
            raise BrokerUnavailableError("away")
        self.announced_to.append(queue)
        return await super().announce(queue, version, tasks)


async def test_each_queue_hears_it_once_an_hour_and_when_the_application_changes() -> None:
    broker, clock = Counting(), ManualClock(datetime(2027, 1, 1, tzinfo=UTC))
    announcing = Announcing(broker, specs_of("one"), "v1", clock)
    for _ in range(3):
        for queue in (ONE, TWO):
            await announcing.announce(queue)
    assert broker.announced_to == [ONE, TWO]
    clock.advance(timedelta(hours=1))
    await announcing.announce(ONE)
    announcing.renew()
    await announcing.announce(ONE)
    assert broker.announced_to == [ONE, TWO, ONE, ONE]
    assert await broker.tasks(ONE) == ("t0",)


async def test_what_redis_did_not_hear_is_said_again() -> None:
    broker, clock = Counting(), ManualClock(datetime(2027, 1, 1, tzinfo=UTC))
    announcing = Announcing(broker, specs_of("one"), "", clock)
    broker.failures = 1
    with pytest.raises(BrokerUnavailableError):
        await announcing.announce(ONE)
    await announcing.announce(ONE)
    assert broker.announced_to == [ONE]


async def test_an_application_of_very_many_tasks_is_announced_in_part() -> None:
    broker, clock = Counting(), ManualClock(datetime(2027, 1, 1, tzinfo=UTC))
    await Announcing(broker, specs_of(*["one"] * (MOST_TASKS + 5)), "", clock).announce(ONE)
    assert len(await broker.tasks(ONE)) == MOST_TASKS


@pytest.mark.parametrize(
    ("declared", "served", "told"),
    [
        (("emails", "reports"), ("default",), "they are declared for emails, reports. Only"),
        (("emails",), ("emials",), "did you mean 'emails'? Only"),
        (("emails",), ("default", "x"), "(default, x): they are declared for emails. Only"),
        ((), ("default",), "the application has no tasks"),
        (("emails", "reports"), ("emails",), None),
    ],
)
def test_a_worker_of_other_queues_than_its_tasks_is_warned(
    caplog: pytest.LogCaptureFixture,
    declared: tuple[str, ...],
    served: tuple[str, ...],
    told: str | None,
) -> None:
    warn_of_other_queues(specs_of(*declared), served)
    assert [told in record.message for record in caplog.records if told] == [True] * bool(told)
    assert len(caplog.records) == bool(told)


def test_tasks_that_name_no_queue_may_well_be_sent_elsewhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    warn_of_other_queues(specs_of("default"), ("reports",))
    (record,) = caplog.records
    assert record.levelname == "INFO"


def test_an_unknown_task_is_warned_of_once_and_told_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    journal = Bench().journal
    for number, task in enumerate(("sned", "sned", "fecth")):
        job = ClaimedJob(f"j{number}", "token", 1, 1, 0, 0, b"{}")
        second, minutes = timedelta(seconds=1), timedelta(minutes=10)
        outcome = Outcome.release_unknown(second, minutes, f"unknown task {task!r}")
        journal.note_unfit(job, outcome)
    assert events(caplog) == ["job_unknown", "job_released", "job_unknown"]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING"]
    assert "600 s at most" in caplog.records[0].message
    assert caplog.records[0].__dict__["cause"] == "unknown task 'sned'"
