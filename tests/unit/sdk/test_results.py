"""Results mean what their annotation says, and cost no job that has done its work."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, assert_type
from uuid import UUID

import pytest
from pydantic import SecretStr

from tests.unit.model.wire_types import Animal, Colour, Dog, Order, Pair, Plain, Tree, Word
from tests.unit.worker.jobs import held
from tidework import AsyncTask, JobHandle, StoredSecret, Task, Tidework
from tidework.clock import ManualClock
from tidework.errors import (
    JobNotFoundError,
    ResultError,
    ResultExpiredError,
    WaitTimeoutError,
)
from tidework.metrics import MetricsPage, WorkerNumbers
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.model.lease import ExchangeRequest, QueueLimits, Settlement
from tidework.model.outcome import RESULT_LIMIT, Outcome
from tidework.model.values.kept_result import refused_result
from tidework.settings import Settings
from tidework.testing.memory.broker import MemoryBroker
from tidework.worker.child.execution import Execution
from tidework.worker.frames import JobFrame
from tidework.worker.queue.job_log import JobLog

QUEUE = QueueName("ns", "default")
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
KEY = UUID("01234567-89ab-cdef-0123-456789abcdef")


class Shop:
    """An app on a broker in memory, and a worker that is called by hand."""

    def __init__(self, limits: QueueLimits | None = None) -> None:
        self.clock = ManualClock(NOON)
        self.broker = MemoryBroker(self.clock, limits or QueueLimits())
        self.app = Tidework("shop", settings=Settings(namespace="ns"), broker=self.broker)
        self._sequence = itertools.count(1)

    async def work(self) -> Outcome:
        """Run the next job to its end."""
        request = ExchangeRequest("w", next(self._sequence), 1)
        (claimed,) = (await self.broker.exchange(QUEUE, request)).claimed
        frame = JobFrame(1, False, 0, 1, 4, 60.0, claimed.body, claimed.token)
        outcome = Execution(self.app.tasks, (QUEUE,), self.clock).run(frame)
        ended = (Settlement(claimed.id, claimed.token, outcome),)
        await self.broker.exchange(QUEUE, ExchangeRequest("w", next(self._sequence), 0, ended))
        return outcome

    async def call(self, hint: Any, result: Any) -> JobHandle[Any]:
        """A job that ended, of a task that declares ``hint`` and returned ``result``."""

        def task() -> Any:
            return result

        task.__annotations__ = {} if hint is ... else {"return": hint}
        handle: JobHandle[Any] = await self.app.task(task).enqueue()
        await self.work()
        return handle


@pytest.mark.parametrize(
    ("hint", "result"),
    [
        (..., {"a": [1, 2.5, None, "x"]}),
        (Any, "x"),
        (None, None),
        (int, 5),
        (dict[str, int], {"a": 1}),
        (dict, {"a": [1]}),
        (list[str], ["a"]),
        (datetime, NOON),
        (UUID, KEY),
        (Decimal, Decimal("1.50")),
        (Colour, Colour.RED),
        (Path, Path("a/b")),
        (set[UUID], {KEY}),
        (tuple[int, datetime], (1, NOON)),
        (bytes, b"\xff"),
        (Animal, Animal(a=1)),
        (Dog, Dog(a=1, b=2)),
        (list[Plain], [Plain(1, ["x"])]),
        (Pair, Pair(1, NOON)),
        (Tree, Tree(name=b"\xff")),
        (Order | None, None),
        (Order | None, Order()),
        (datetime | str, NOON),
        (datetime | str, "2026-03-04T12:00:00Z"),
        (Path | str, "a/b"),
        (dict[int, bytes], {1: b"\xff"}),
        (timedelta, timedelta(seconds=1.5)),
    ],
)
async def test_a_result_is_what_was_returned(hint: Any, result: Any) -> None:
    handle = await Shop().call(hint, result)

    for found in (await handle.result(timeout=1), handle.result_sync(timeout=1)):
        assert found == result
        assert type(found) is type(result)
    assert (await handle.get()).state is JobState.SUCCEEDED


@pytest.mark.parametrize(
    ("hint", "result", "found"),
    [
        (..., (1, [Word.YES]), [1, ["yes"]]),
        (dict, {"a": (1, 2)}, {"a": [1, 2]}),
        (float, 3, 3.0),
        (Sequence[int], (1, 2), [1, 2]),
    ],
)
async def test_a_result_without_a_type_of_its_own_is_json_data(
    hint: Any, result: Any, found: Any
) -> None:
    assert await (await Shop().call(hint, result)).result(timeout=1) == found


class Hostile:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __iter__(self) -> Any:
        raise self._error

    def __repr__(self) -> str:
        raise self._error


@pytest.mark.parametrize(
    ("hint", "result", "told"),
    [
        (..., object(), "task task returned object"),
        (..., {1, 2}, "returned set"),
        (..., NOON, "declare its type as datetime"),
        (..., {1: "a"}, "1 would arrive as '1'"),
        (..., float("nan"), "not JSON data"),
        (float, float("inf"), "not JSON data"),
        (..., "x" * RESULT_LIMIT, "the limit is 1048576"),
        (..., "\ud800", "not JSON data"),
        (int, "five", "is not what it declares: Input should be a valid integer"),
        (Animal, Dog(a=1, b=2), "declare its type as Dog"),
        (list[int], Hostile(SystemExit(1)), "returned Hostile"),
        (list[int], Hostile(KeyboardInterrupt()), "returned Hostile"),
        (Shop, object(), "which cannot be dumped"),
    ],
)
async def test_a_result_that_cannot_be_kept_is_a_success_without_it(
    hint: Any, result: Any, told: str
) -> None:
    handle = await Shop().call(hint, result)

    record = await handle.get()
    assert (record.state, record.result, record.error) == (JobState.SUCCEEDED, None, None)
    with pytest.raises(ResultError, match=told):
        await handle.result(timeout=1)
    with pytest.raises(ResultError, match=told):
        handle.result_sync(timeout=1)


async def test_a_result_that_is_not_kept_is_counted() -> None:
    numbers = WorkerNumbers("1", 1)
    journal = JobLog("q", numbers, ManualClock(NOON))

    journal.note_ended(held("a"), Outcome.complete(refused_result("too long")), 0.1)
    journal.note_ended(held("b"), Outcome.complete(b"1"), 0.1)

    assert numbers.total("succeeded") == 2
    assert numbers.total("result_refused") == 1
    assert b"tidework_jobs_result_refused_total" in MetricsPage(numbers).text()


async def test_an_annotation_of_another_version_is_told() -> None:
    shop = Shop()
    handle = await shop.call(int, 5)
    newer = Tidework("shop", settings=Settings(namespace="ns"), broker=shop.broker)

    def task() -> list[int]: ...  # type: ignore[empty-body]

    found = JobHandle[list[int]](
        newer.client, handle.id, "default", result=newer.task(task).signature.result
    )
    with pytest.raises(ResultError, match="5 is not what the task declares"):
        await found.result(timeout=1)


async def test_a_forgotten_job_is_told_apart_from_one_that_never_was() -> None:
    shop = Shop(QueueLimits(keep_count=1))
    first = await shop.call(..., 1)
    shop.clock.advance(timedelta(seconds=1))

    @shop.app.task
    def other() -> None: ...

    await other.enqueue()
    await shop.work()
    await shop.broker.upkeep(QUEUE)

    told = r"retention\.count \(10,000"
    with pytest.raises(ResultExpiredError, match=told) as expired:
        await first.result(timeout=1)
    assert expired.value.ended_at == NOON
    with pytest.raises(ResultExpiredError, match=told):
        await shop.app.client.result(first.id, queue="default")
    for ask in (shop.app.client.get, shop.app.client.cancel):
        with pytest.raises(ResultExpiredError, match=told):
            await ask(first.id, queue="default")
    with pytest.raises(JobNotFoundError, match="never enqueued") as unknown:
        await shop.app.client.result("never", queue="default")
    assert not isinstance(unknown.value, ResultExpiredError)


async def test_a_job_that_retention_took_long_ago_is_known_to_its_handle() -> None:
    shop = Shop(QueueLimits(keep_succeeded=timedelta(minutes=20)))
    handle = await shop.call(..., 1)
    shop.clock.advance(timedelta(minutes=30))
    await shop.broker.upkeep(QUEUE)

    with pytest.raises(ResultExpiredError, match="succeededSeconds") as expired:
        await handle.result(timeout=1)
    assert expired.value.ended_at is None
    with pytest.raises(JobNotFoundError):
        await shop.app.client.result(handle.id, queue="default")


async def test_types_are_those_of_the_function() -> None:
    """Checked by mypy --strict; here they only run."""
    shop = Shop()

    @shop.app.task
    def plain(a: int) -> str:
        return str(a)

    @shop.app.task
    async def later(a: int) -> str:
        return str(a)

    @shop.app.task(max_attempts=2)
    def with_options(a: int) -> datetime:
        return NOON

    @shop.app.task(max_attempts=2)
    async def later_with_options(a: int) -> list[int]:
        return [a]

    assert_type(plain(1), str)
    assert_type(await later(1), str)
    assert_type(await plain.enqueue(1), JobHandle[str])
    assert_type(await later.enqueue(1), JobHandle[str])
    assert_type(await later.options(priority=1).enqueue(1), JobHandle[str])
    assert_type(with_options.enqueue_sync(a=1), JobHandle[datetime])
    assert_type(await later_with_options.enqueue_many([{"a": 1}]), list[JobHandle[list[int]]])
    handle = await later_with_options.enqueue(1)
    with pytest.raises(WaitTimeoutError):
        assert_type(await handle.result(timeout=0), list[int])
    with pytest.raises(WaitTimeoutError):
        assert_type(handle.result_sync(timeout=0), list[int])
    assert isinstance(later, AsyncTask)
    assert isinstance(plain, Task)
    assert not isinstance(plain, AsyncTask)
    await plain.enqueue("1")  # type: ignore[arg-type]


async def test_a_secret_result_is_kept_only_if_it_says_so() -> None:
    kept = await (await Shop().call(StoredSecret, SecretStr("x"))).result(timeout=1)
    assert kept.get_secret_value() == "x"
    with pytest.raises(ResultError, match="StoredSecret"):
        await (await Shop().call(SecretStr, SecretStr("x"))).result(timeout=1)
