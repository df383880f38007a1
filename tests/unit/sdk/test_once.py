"""once: what a job's code sees, and what becomes of its job."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidework import once
from tidework.app import Tidework
from tidework.broker.answers import OnceAnswer
from tidework.broker.connection.transport import drive
from tidework.client import Client
from tidework.clock import ManualClock
from tidework.errors import (
    BrokerError,
    BrokerUnavailableError,
    ConfigurationError,
    NotDurableError,
    SoftTimeout,
)
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest, Lease
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.testing.memory.broker import MemoryBroker
from tidework.worker.child.execution import Execution
from tidework.worker.frames import JobFrame

QUEUE = QueueName("ns", "q")
DAY = timedelta(days=1)


class JobRunner:
    """A queue in memory, and an Execution for functions as its tasks."""

    def __init__(self) -> None:
        self.clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.broker = MemoryBroker(self.clock)
        self._number = 0

    def claim(self) -> Lease:
        self._number += 1
        drive(self.broker.enqueue(QUEUE, [Job(f"j{self._number}", "t", {})]))
        request = ExchangeRequest("w", self._number, 1)
        (found,) = drive(self.broker.exchange(QUEUE, request)).claimed
        return Lease(found.id, found.token)

    def run(self, function: Callable[..., Any], lease: Lease | None = None) -> Outcome:
        """Of the next job, unless another lease is given."""
        lease = lease or self.claim()
        app = Tidework("test")
        app.task(name="t")(function)
        body = json.dumps({"v": 1, "id": lease.job_id, "task": "t", "created_at": 1}).encode()
        frame = JobFrame(1, False, 0, 1, 3, 60, body, lease.token)
        execution = Execution(app.tasks, (QUEUE,), self.clock)
        try:
            return execution.run(frame)
        finally:
            if execution._loop is not None:
                execution._loop.close()


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> JobRunner:
    found = JobRunner()
    monkeypatch.setattr("tidework.once_per_key._client", Client(broker=found.broker))
    return found


def sync_task() -> bool:
    with once("charge:42", ttl=DAY) as first:
        return first


async def async_task() -> bool:
    async with once("charge:42", ttl=DAY) as first:
        await asyncio.sleep(0)
        return first


@pytest.mark.parametrize("task", [sync_task, async_task])
def test_the_first_does_it_the_next_hears_of_it(runner: JobRunner, task: Callable[[], Any]) -> None:
    assert runner.run(task) == Outcome.complete(b"true")
    assert runner.run(sync_task) == runner.run(async_task) == Outcome.complete(b"false")

    runner.clock.advance(DAY)

    assert runner.run(task) == Outcome.complete(b"true")


@pytest.mark.parametrize("task", [sync_task, async_task])
def test_a_job_that_meets_another_at_it_is_given_back(
    runner: JobRunner, task: Callable[[], Any]
) -> None:
    drive(runner.broker.once_begin(QUEUE, runner.claim(), "charge:42"))

    found = runner.run(task)

    assert (found.kind, found.delay) == (OutcomeKind.RELEASE, timedelta(seconds=1))
    assert "charge:42" in found.cause


def test_no_handler_catches_that_by_accident(runner: JobRunner) -> None:
    drive(runner.broker.once_begin(QUEUE, runner.claim(), "charge:42"))

    def careless() -> None:
        try:
            sync_task()
        except Exception:
            raise AssertionError from None

    async def grouped() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(async_task())

    assert runner.run(careless).kind is runner.run(grouped).kind is OutcomeKind.RELEASE


def test_a_block_that_raises_was_not_done(runner: JobRunner) -> None:
    def fails() -> None:
        with once("charge:42", ttl=DAY):
            raise ValueError("no money")

    async def fails_too() -> None:
        async with once("charge:42", ttl=DAY):
            raise ValueError("no money")

    for task in (fails, fails_too):
        assert JobError.decode(runner.run(task).detail).message == "no money"
    assert runner.run(sync_task) == Outcome.complete(b"true")


def test_a_block_that_raises_keeps_its_error_when_redis_is_away(
    runner: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> bool:
        raise BrokerUnavailableError("gone")

    monkeypatch.setattr(runner.broker, "once_end", refuse)

    def fails() -> None:
        with once("charge:42", ttl=DAY):
            raise ValueError("no money")

    assert JobError.decode(runner.run(fails).detail).type == "ValueError"
    assert runner.run(sync_task).kind is OutcomeKind.RELEASE, "its mark is there"


@pytest.mark.parametrize("task", [sync_task, async_task])
def test_the_end_is_told_again_until_redis_takes_it(
    runner: JobRunner,
    task: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    told, once_end = [], runner.broker.once_end

    async def away(*given: Any, **named: Any) -> bool:
        told.append(given)
        if len(told) < 4:
            raise BrokerUnavailableError("gone")
        return await once_end(*given, **named)

    monkeypatch.setattr("tidework.once_per_key.FIRST_PAUSE", 0.001)
    monkeypatch.setattr(runner.broker, "once_end", away)

    assert runner.run(task) == Outcome.complete(b"true")

    assert len(told) == 4
    assert [record.levelname for record in caplog.records].count("WARNING") == 1
    assert runner.run(sync_task) == Outcome.complete(b"false"), "it is done"


def test_an_attempt_that_is_told_to_end_waits_no_longer_for_redis(
    runner: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> bool:
        raise BrokerUnavailableError("gone")

    def strike(_seconds: float) -> None:
        raise SoftTimeout(1)

    monkeypatch.setattr(runner.broker, "once_end", away)
    monkeypatch.setattr("time.sleep", strike)

    assert JobError.decode(runner.run(sync_task).detail).type == "SoftTimeout"


@pytest.mark.parametrize("task", [sync_task, async_task])
@pytest.mark.parametrize(
    "error",
    [
        BrokerUnavailableError("gone"),
        NotDurableError("a:6379", "replicas", 0, 1, timedelta(seconds=1)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_job_that_cannot_ask_who_is_first_is_given_back(
    runner: JobRunner, monkeypatch: pytest.MonkeyPatch, task: Callable[[], Any], error: BrokerError
) -> None:
    async def fail(*_: object) -> OnceAnswer:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(runner.broker, "once_begin", fail)
        outcome = runner.run(task)

    assert outcome.kind is OutcomeKind.RELEASE
    assert str(error) in outcome.cause
    assert runner.run(task) == Outcome.complete(b"true")


def test_a_lost_lease_is_told_before_and_after_the_block(runner: JobRunner) -> None:
    lost = runner.run(sync_task, Lease("j1", "w:99"))
    lease = runner.claim()

    def overtaken() -> None:
        with once("charge:42", ttl=DAY):
            drive(runner.broker.once_end(QUEUE, lease, "charge:42", ttl=None))
            other = runner.claim()
            answer = drive(runner.broker.once_begin(QUEUE, other, "charge:42"))
            assert answer is OnceAnswer.FIRST

    late = runner.run(overtaken, lease)

    for outcome in (lost, late):
        assert JobError.decode(outcome.detail).type == "LeaseLostError"


@pytest.mark.parametrize(
    ("key", "ttl"),
    [("", DAY), ("x" * 201, DAY), ("a\n", DAY), ("k", 0), ("k", timedelta(days=366)), ("k", "1d")],
)
def test_bad_values_are_refused(key: str, ttl: Any) -> None:
    with pytest.raises(ConfigurationError, match="once"):
        once(key, ttl=ttl)


def test_outside_of_a_job_it_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="outside of a job"), once("k", ttl=DAY):
        pass
