"""checkpoint: where the next attempt goes on, and what it refuses."""

from __future__ import annotations

import asyncio
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from tests.unit.sdk.long_jobs import (
    LongJob,
    Walker,
    both,
    error_of,
    fail_once,
    long_job,
    rows_after,
    stream_after,
)
from tidework import checkpoint, progress
from tidework.errors import (
    BrokerRefusedError,
    BrokerUnavailableError,
    CheckpointError,
    ConfigurationError,
)
from tidework.model.identity import QueueName
from tidework.model.outcome import Outcome, OutcomeKind
from tidework.model.progress import KEY_LIMIT, MOST_CHECKPOINTS, check_texts

__all__ = ["long_job"]


@both
@pytest.mark.parametrize(
    ("source", "options"),
    [
        (range(1, 7), {}),
        (range(1, 7), {"key": lambda item: item}),
        (range(1, 7), {"key": lambda item: f"item {item}", "name": "rows"}),
        (rows_after, {"key": lambda item: item}),
        (rows_after, {}),
        (lambda last: list(rows_after(last)), {"key": lambda item: item}),
    ],
    ids=["positions", "keys", "named", "cursor", "cursor by position", "lists"],
)
def test_an_attempt_goes_on_where_the_last_one_failed(
    long_job: LongJob, is_async: bool, source: Any, options: dict[str, Any]
) -> None:
    walker = Walker(source, fail_once(4), **options)
    task = walker.task(is_async=is_async)

    assert long_job.run(task).kind is OutcomeKind.RETRY
    assert walker.done == [1, 2, 3]
    assert len(long_job.positions) == 1
    assert long_job.run(task) == Outcome.complete(b"[1,2,3,4,5,6]")

    assert long_job.positions == {}


def test_async_sources(long_job: LongJob) -> None:
    walker = Walker(stream_after, fail_once(4), key=lambda item: item)
    task = walker.task(is_async=True)

    assert long_job.run(task).kind is OutcomeKind.RETRY
    assert long_job.run(task) == Outcome.complete(b"[1,2,3,4,5,6]")


def test_what_was_not_told_is_done_again_and_nothing_is_left_out(
    long_job: LongJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill: what the process held back has not got out."""
    long_job.run(Walker([1, 2, 3], fail_once(3)).task(is_async=False))
    assert long_job.positions == {"": 2}
    walker = Walker([1, 2, 3, 4], fail_once(4))
    task = walker.task(is_async=False)

    with monkeypatch.context() as patched:
        patched.setattr(long_job, "_say", lambda *_: True)
        long_job.run(task)
    assert walker.done == [3]

    assert long_job.run(task) == Outcome.complete(b"[3,3,4]")


@both
def test_everything_was_done_before(long_job: LongJob, is_async: bool) -> None:
    """It failed after its loop."""
    walker = Walker(range(3))
    walk = walker.task(is_async=is_async)

    def fail() -> None:
        walker.task(is_async=False)()
        raise ValueError("afterwards")

    long_job.run(fail)

    assert long_job.run(walk) == Outcome.complete(b"[0,1,2]")


def test_two_checkpoints_of_one_job_go_on_each_for_itself(long_job: LongJob) -> None:
    done: list[str] = []
    failing = fail_once("b2")

    def task() -> None:
        done.extend(checkpoint(["a1", "a2"], name="first"))
        for item in checkpoint(["b1", "b2"], key=str, name="second"):
            failing(item)
            done.append(item)

    assert long_job.run(task).kind is OutcomeKind.RETRY
    assert long_job.positions == {"first": 2, "second": "b1"}
    assert long_job.run(task) == Outcome.complete()

    assert done == ["a1", "a2", "b1", "b2"]


def test_two_of_one_name_are_refused(long_job: LongJob) -> None:
    def task() -> None:
        for _ in range(2):
            list(checkpoint([1]))

    assert "give each a name" in error_of(long_job.run(task)).message


def test_too_many_are_refused(long_job: LongJob) -> None:
    def task() -> None:
        for number in range(MOST_CHECKPOINTS + 1):
            list(checkpoint([1], name=str(number)))

    assert "16 checkpoints at most" in error_of(long_job.run(task)).message


@both
@pytest.mark.parametrize(
    ("options", "position"), [({}, 2), ({"key": lambda item: item}, "2")], ids=["count", "key"]
)
def test_items_that_are_not_there_any_more_are_an_error(
    long_job: LongJob, is_async: bool, options: dict[str, Any], position: Any
) -> None:
    long_job.run(Walker(["1", "2", "3"], fail_once("3"), **options).task(is_async=False))
    other = Walker(["9"], **options)

    outcome = long_job.run(other.task(is_async=is_async))

    assert error_of(outcome).type == "CheckpointError"
    assert f"cannot go on after {position!r}" in error_of(outcome).message
    assert other.done == []
    assert long_job.positions == {"": position}, "it is kept"


def test_a_break_leaves_its_item_undone(long_job: LongJob) -> None:
    def stop() -> None:
        for item in checkpoint([1, 2, 3]):
            if item == 2:
                break
        raise ValueError("later")

    long_job.run(stop)

    assert long_job.positions == {"": 1}


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


@pytest.mark.parametrize(
    "items",
    [list(Colour), list(Size), [1.5, 2.5], [True, False], ["a\tb", "\ud800", "x" * KEY_LIMIT]],
)
def test_keys_come_back_as_they_went(long_job: LongJob, items: list[Any]) -> None:
    walker = Walker(items, fail_once(items[-1]), key=lambda item: item)
    task = walker.task(is_async=False)

    long_job.run(task)
    long_job.run(task)

    assert walker.done == items


@pytest.mark.parametrize("key", [None, b"1", (1, 2), float("nan"), 2**70, "x" * (KEY_LIMIT + 1)])
def test_a_key_that_is_none_is_refused_before_its_item_is_done(long_job: LongJob, key: Any) -> None:
    walker = Walker([1], key=lambda _item: key)

    outcome = long_job.run(walker.task(is_async=False))

    assert error_of(outcome).type == "ConfigurationError"
    assert "key() of an item returned" in error_of(outcome).message
    assert walker.done == []


def test_what_cannot_be_iterated_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="7 cannot be iterated"):
        checkpoint(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["x" * 41, "a\nb"])
def test_bad_names(name: str) -> None:
    with pytest.raises(ConfigurationError, match="printable characters"):
        checkpoint([], name=name)


def test_a_for_over_what_is_async_says_what_to_write(long_job: LongJob) -> None:
    outcome = long_job.run(Walker(stream_after).task(is_async=False))

    assert "write 'async for'" in error_of(outcome).message


def test_outside_of_a_job_it_is_a_plain_iteration() -> None:
    async def walk() -> list[int]:
        return [item async for item in checkpoint(stream_after, key=lambda item: item)]

    assert list(checkpoint([1, 2], key=lambda item: object(), name="x")) == [1, 2]  # type: ignore[arg-type, return-value]
    assert list(checkpoint(rows_after)) == [1, 2, 3, 4, 5, 6]
    assert asyncio.run(walk()) == [1, 2, 3, 4, 5, 6]
    progress(1)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_job_that_cannot_ask_where_it_stands_is_given_back(
    long_job: LongJob, monkeypatch: pytest.MonkeyPatch, *, is_async: bool
) -> None:
    async def fail(_queue: QueueName, _job: str) -> Any:
        raise BrokerUnavailableError("gone for a test")

    monkeypatch.setattr(long_job.broker, "checkpoints", fail)
    walker = Walker([1])
    outcome = long_job.run(walker.task(is_async=is_async))

    assert outcome.kind is OutcomeKind.RELEASE
    assert "gone for a test" in outcome.cause
    assert walker.done == []


def test_a_place_that_redis_refuses_to_tell_is_a_failed_attempt(
    long_job: LongJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_queue: QueueName, _job: str) -> Any:
        raise BrokerRefusedError("no right for a test")

    monkeypatch.setattr(long_job.broker, "checkpoints", refuse)
    walker = Walker([1])

    assert error_of(long_job.run(walker.task(is_async=False))).type == "BrokerRefusedError"
    assert walker.done == []


def test_the_error_names_its_position() -> None:
    error = CheckpointError("checkpoint()", 7)

    assert error.position == 7
    assert "enqueue a new job" in str(error)


def test_the_largest_positions_pass_the_supervisor(long_job: LongJob) -> None:
    def task() -> None:
        for number in range(MOST_CHECKPOINTS):
            name = f"{number:02}" + "\N{GRINNING FACE}" * 38
            list(checkpoint([number], key=lambda _item: "\N{GRINNING FACE}" * KEY_LIMIT, name=name))

    assert long_job.run(task) == Outcome.complete()

    largest = max((positions for _, positions in long_job.said), key=len)
    assert len(largest) > 40_000
    check_texts(b"", largest)
