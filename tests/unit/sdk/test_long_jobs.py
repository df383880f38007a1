"""progress and checkpoint: what a job's code sees, says, and goes on with."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from tidework import CancelRequested, checkpoint, current_job, progress
from tidework.app import Tidework
from tidework.broker.memory import MemoryBroker
from tidework.broker.transport import drive
from tidework.client import Client
from tidework.clock import ManualClock
from tidework.errors import BrokerUnavailableError, CheckpointError, ConfigurationError
from tidework.model import current
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest, Lease, Settlement
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.model.progress import KEY_LIMIT, MOST_CHECKPOINTS, NOTE_LIMIT, ProgressNote
from tidework.worker.execution import STOPPED, Execution
from tidework.worker.frames import Cancel, HandBack, JobFrame, JobOrder, Stop

QUEUE = QueueName("ns", "q")


class Bench:
    """A queue in memory, one job in it, and an Execution for a function as its task.

    said:  texts that the job's process sent, in order; a broker keeps them as a supervisor would
    mute:  the process cannot send any, but for the last
    """

    def __init__(self) -> None:
        self.broker = MemoryBroker(ManualClock(datetime(2026, 1, 1, tzinfo=UTC)))
        self.said: list[tuple[bytes, bytes]] = []
        self.mute = False
        self.execution: Execution
        self._sequence = 0
        self._lease: Lease
        drive(self.broker.enqueue(QUEUE, [Job("j", "t", {})]))

    def run(self, function: Callable[..., Any]) -> Outcome:
        """An attempt of the job, settled."""
        self._sequence += 1
        request = ExchangeRequest("w", self._sequence, 1)
        (found,) = drive(self.broker.exchange(QUEUE, request)).claimed
        self._lease = Lease(found.id, found.token)
        app = Tidework("test")
        app.task(name="t", delays=[0])(function)
        body = json.dumps({"v": 1, "id": "j", "task": "t", "created_at": 1}).encode()
        frame = JobFrame(1, False, 0, found.attempt, 9, 60, body, found.token)
        self.execution = Execution(app.tasks, (QUEUE,))
        self.execution.say = self._say
        try:
            outcome = self.execution.run(frame)
        finally:
            if self.execution._loop is not None:
                self.execution._loop.close()
        self._sequence += 1
        ends = (Settlement(*self._lease, outcome),)
        drive(self.broker.exchange(QUEUE, ExchangeRequest("w", self._sequence, 0, ends)))
        return outcome

    def tell(self, order: Callable[[int], JobOrder]) -> None:
        """As the child does when the supervisor has written."""
        self.execution.tell(order(1))

    @property
    def positions(self) -> Any:
        return drive(self.broker.checkpoints(QUEUE, "j"))

    def _say(self, number: int, said: bytes, positions: bytes, last: bool) -> bool:
        assert number == 1
        if self.mute and not last:
            return False
        self.said.append((said, positions))
        note = ProgressNote(*self._lease, len(self.said), said, positions)
        assert drive(self.broker.note_progress(QUEUE, [note])) == ()
        return True


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    found = Bench()
    monkeypatch.setattr("tidework.long_jobs._client", Client(broker=found.broker))
    return found


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that a job says is sent at once."""
    monkeypatch.setattr(current, "SAID_EVERY_S", 0.0)


def error_of(outcome: Outcome) -> JobError:
    assert outcome.kind in (OutcomeKind.RETRY, OutcomeKind.BURY)
    return JobError.decode(outcome.detail)


def progress_in(texts: list[tuple[bytes, bytes]]) -> list[Any]:
    return [json.loads(text) for text, _ in texts if text]


class Walker:
    """A task, sync or async, that goes through items and fails at one, once.

    source: what it iterates; options: of checkpoint
    done:   items that it did, in all attempts
    at:     called with each item before it is done
    """

    def __init__(self, source: Any, at: Callable[[Any], None] | None = None, **options: Any):
        self.source = source
        self.options = options
        self.done: list[Any] = []
        self.at = at or (lambda _item: None)

    def task(self, *, is_async: bool) -> Callable[[], Any]:
        """The function."""

        def walk() -> list[Any]:
            for item in checkpoint(self.source, **self.options):
                self.at(item)
                self.done.append(item)
            return self.done

        async def walk_async() -> list[Any]:
            async for item in checkpoint(self.source, **self.options):
                await asyncio.sleep(0)
                self.at(item)
                self.done.append(item)
            return self.done

        return walk_async if is_async else walk


def fail_once(wanted: Any) -> Callable[[Any], None]:
    left = [wanted]

    def at(item: Any) -> None:
        if item in left:
            left.remove(item)
            raise ValueError("not yet")

    return at


both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


def rows_after(last: Any) -> Iterator[int]:
    """A cursor of a database."""
    return iter(range((last or 0) + 1, 7))


async def stream_after(last: Any) -> AsyncIterator[int]:
    for row in rows_after(last):
        await asyncio.sleep(0)
        yield row


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
    bench: Bench, is_async: bool, source: Any, options: dict[str, Any]
) -> None:
    walker = Walker(source, fail_once(4), **options)
    task = walker.task(is_async=is_async)

    assert bench.run(task).kind is OutcomeKind.RETRY
    assert walker.done == [1, 2, 3]
    assert len(bench.positions) == 1
    assert bench.run(task) == Outcome.complete(b"[1,2,3,4,5,6]")

    assert bench.positions == {}


def test_async_sources(bench: Bench) -> None:
    walker = Walker(stream_after, fail_once(4), key=lambda item: item)
    task = walker.task(is_async=True)

    assert bench.run(task).kind is OutcomeKind.RETRY
    assert bench.run(task) == Outcome.complete(b"[1,2,3,4,5,6]")


def test_what_was_not_told_is_done_again_and_nothing_is_left_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill: what the process held back has not got out."""
    bench.run(Walker([1, 2, 3], fail_once(3)).task(is_async=False))
    assert bench.positions == {"": 2}
    walker = Walker([1, 2, 3, 4], fail_once(4))
    task = walker.task(is_async=False)

    with monkeypatch.context() as patched:
        patched.setattr(bench, "_say", lambda *_: True)
        bench.run(task)
    assert walker.done == [3]

    assert bench.run(task) == Outcome.complete(b"[3,3,4]")


@both
def test_everything_was_done_before(bench: Bench, is_async: bool) -> None:
    """It failed after its loop."""
    walker = Walker(range(3))
    walk = walker.task(is_async=is_async)

    def fail() -> None:
        walker.task(is_async=False)()
        raise ValueError("afterwards")

    bench.run(fail)

    assert bench.run(walk) == Outcome.complete(b"[0,1,2]")


def test_two_checkpoints_of_one_job_go_on_each_for_itself(bench: Bench) -> None:
    done: list[str] = []
    failing = fail_once("b2")

    def task() -> None:
        done.extend(checkpoint(["a1", "a2"], name="first"))
        for item in checkpoint(["b1", "b2"], key=str, name="second"):
            failing(item)
            done.append(item)

    assert bench.run(task).kind is OutcomeKind.RETRY
    assert bench.positions == {"first": 2, "second": "b1"}
    assert bench.run(task) == Outcome.complete()

    assert done == ["a1", "a2", "b1", "b2"]


def test_two_of_one_name_are_refused(bench: Bench) -> None:
    def task() -> None:
        for _ in range(2):
            list(checkpoint([1]))

    assert "give each a name" in error_of(bench.run(task)).message


def test_too_many_are_refused(bench: Bench) -> None:
    def task() -> None:
        for number in range(MOST_CHECKPOINTS + 1):
            list(checkpoint([1], name=str(number)))

    assert "16 checkpoints at most" in error_of(bench.run(task)).message


@both
@pytest.mark.parametrize(
    ("options", "position"), [({}, 2), ({"key": lambda item: item}, "2")], ids=["count", "key"]
)
def test_items_that_are_not_there_any_more_are_an_error(
    bench: Bench, is_async: bool, options: dict[str, Any], position: Any
) -> None:
    bench.run(Walker(["1", "2", "3"], fail_once("3"), **options).task(is_async=False))
    other = Walker(["9"], **options)

    outcome = bench.run(other.task(is_async=is_async))

    assert error_of(outcome).type == "CheckpointError"
    assert f"cannot go on after {position!r}" in error_of(outcome).message
    assert other.done == []
    assert bench.positions == {"": position}, "it is kept"


def test_a_break_leaves_its_item_undone(bench: Bench) -> None:
    def stop() -> None:
        for item in checkpoint([1, 2, 3]):
            if item == 2:
                break
        raise ValueError("later")

    bench.run(stop)

    assert bench.positions == {"": 1}


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
def test_keys_come_back_as_they_went(bench: Bench, items: list[Any]) -> None:
    walker = Walker(items, fail_once(items[-1]), key=lambda item: item)
    task = walker.task(is_async=False)

    bench.run(task)
    bench.run(task)

    assert walker.done == items


@pytest.mark.parametrize("key", [None, b"1", (1, 2), float("nan"), 2**70, "x" * (KEY_LIMIT + 1)])
def test_a_key_that_is_none_is_refused_before_its_item_is_done(bench: Bench, key: Any) -> None:
    walker = Walker([1], key=lambda _item: key)

    outcome = bench.run(walker.task(is_async=False))

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


def test_a_for_over_what_is_async_says_what_to_write(bench: Bench) -> None:
    outcome = bench.run(Walker(stream_after).task(is_async=False))

    assert "write 'async for'" in error_of(outcome).message


def test_outside_of_a_job_it_is_a_plain_iteration() -> None:
    async def walk() -> list[int]:
        return [item async for item in checkpoint(stream_after, key=lambda item: item)]

    assert list(checkpoint([1, 2], key=lambda item: object(), name="x")) == [1, 2]  # type: ignore[arg-type, return-value]
    assert list(checkpoint(rows_after)) == [1, 2, 3, 4, 5, 6]
    assert asyncio.run(walk()) == [1, 2, 3, 4, 5, 6]
    progress(1)


def test_a_place_that_cannot_be_read_is_a_failed_attempt(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_queue: QueueName, _job: str) -> Any:
        raise BrokerUnavailableError("gone for a test")

    monkeypatch.setattr(bench.broker, "checkpoints", fail)
    walker = Walker([1])

    assert error_of(bench.run(walker.task(is_async=False))).type == "BrokerUnavailableError"
    assert walker.done == []


@both
def test_a_job_that_is_asked_back_ends_after_its_item(bench: Bench, is_async: bool) -> None:
    walker = Walker([1, 2, 3], lambda item: bench.tell(HandBack) if item == 2 else None)
    task = walker.task(is_async=is_async)

    outcome = bench.run(task)

    assert outcome.kind is OutcomeKind.RELEASE
    assert not outcome.delay
    assert "goes on elsewhere" in outcome.cause
    assert walker.done == [1, 2]
    walker.at = lambda _item: None
    assert bench.run(task) == Outcome.complete(b"[1,2,3]")


@both
def test_a_cancel_waits_for_the_end_of_the_item(bench: Bench, is_async: bool) -> None:
    seen: list[bool] = []

    def at(_item: int) -> None:
        bench.tell(Cancel)
        seen.append(current_job().cancel_requested)

    walker = Walker([1, 2, 3], at)

    assert bench.run(walker.task(is_async=is_async)) == STOPPED
    assert walker.done == [1]
    assert seen == [True]


def test_an_item_that_takes_too_long_is_interrupted(bench: Bench) -> None:
    def at(_item: int) -> None:
        bench.tell(Cancel)
        bench.tell(Stop)

    walker = Walker([1, 2], at)

    assert bench.run(walker.task(is_async=False)) == STOPPED
    assert walker.done == []


def test_whoever_swallows_it_meets_it_again_at_the_next_item(bench: Bench) -> None:
    tries = []

    def task() -> None:
        items = [1, 2, 3]
        for item in checkpoint(items):
            tries.append(item)
            try:
                bench.tell(Cancel)
                bench.tell(Stop)
            except CancelRequested:
                continue

    assert bench.run(task) == STOPPED
    assert tries == [1]


def test_a_cancel_is_raised_in_the_handler_at_once_and_once(bench: Bench) -> None:
    met: list[str] = []

    def task() -> str:
        try:
            bench.tell(Cancel)
        except Exception:
            met.append("Exception")
        except CancelRequested:
            met.append("CancelRequested")
        bench.tell(Cancel)
        bench.tell(Stop)
        return "a result that nobody wants"

    assert bench.run(task) == STOPPED
    assert met == ["CancelRequested"]


def test_an_async_handler_is_cancelled(bench: Bench) -> None:
    met: list[str] = []

    async def task() -> None:
        bench.tell(Cancel)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            met.append("cancelled")
            await asyncio.sleep(0)  # its cleanup is not disturbed
            met.append("cleaned up")
            raise

    assert bench.run(task) == STOPPED
    assert met == ["cancelled", "cleaned up"]


def test_what_is_told_before_the_job_begins_is_not_lost(bench: Bench) -> None:
    ran: list[int] = []
    drive(bench.broker.exchange(QUEUE, ExchangeRequest("w", 1, 0)))
    app = Tidework("test")
    app.task(name="t")(lambda: ran.append(1))
    execution = Execution(app.tasks, (QUEUE,))
    body = json.dumps({"v": 1, "id": "j", "task": "t", "created_at": 1}).encode()
    execution.tell(Cancel(1))
    execution.tell(Cancel(3))

    frames = [JobFrame(number, False, 0, 1, 9, 60, body) for number in (1, 2, 3)]

    kinds = [execution.run(frame).kind for frame in frames]
    assert kinds == [OutcomeKind.CANCELLED, OutcomeKind.COMPLETE, OutcomeKind.CANCELLED]
    assert ran == [1]


def test_what_is_told_after_the_end_changes_nothing(bench: Bench) -> None:
    outcome = bench.run(lambda: None)
    bench.tell(Cancel)
    bench.tell(Stop)

    assert outcome == Outcome.complete()


@pytest.mark.usefixtures("talkative")
def test_progress_is_said_as_it_is(bench: Bench) -> None:
    def task() -> None:
        progress(1)
        progress(2.5, 10, "the\nsecond\tone")
        progress(3, note="x" * 1000)

    bench.run(task)

    assert progress_in(bench.said) == [
        [1, None, ""],
        [2.5, 10, "the second one"],
        [3, None, "x" * NOTE_LIMIT],
    ]


def test_of_very_many_few_are_said_and_the_last_one_is(bench: Bench) -> None:
    def task() -> None:
        for number in range(10_000):
            progress(number, 10_000)

    bench.run(task)

    found = progress_in(bench.said)
    assert len(found) < 100
    assert (found[0], found[-1]) == ([0, 10_000, ""], [9_999, 10_000, ""])


def test_the_last_word_before_a_long_silence_is_said_too(bench: Bench) -> None:
    heard = threading.Event()
    say = bench._say

    def hear(number: int, said: bytes, positions: bytes, last: bool) -> bool:
        if said.startswith(b"[2,") and not last:
            heard.set()
        return say(number, said, positions, last)

    bench._say = hear  # type: ignore[method-assign]

    def task() -> bool:
        progress(1)
        progress(2)
        return heard.wait(10)

    assert bench.run(task) == Outcome.complete(b"true")


def test_what_cannot_be_sent_now_is_sent_later(bench: Bench) -> None:
    bench.mute = True

    def task() -> None:
        for item in checkpoint([1, 2]):
            progress(item)
        raise ValueError("end")

    bench.run(task)

    assert progress_in(bench.said) == [[2, None, ""]]
    assert bench.positions == {"": 2}


@pytest.mark.usefixtures("talkative")
def test_threads_and_tasks_of_a_job_may_say_so_too(bench: Bench) -> None:
    async def task() -> None:
        await asyncio.to_thread(progress, 1)
        await asyncio.gather(asyncio.to_thread(progress, 2))

    bench.run(task)

    assert progress_in(bench.said) == [[1, None, ""], [2, None, ""]]


def test_a_thread_that_a_job_left_behind_says_nothing(bench: Bench) -> None:
    ended, said = threading.Event(), threading.Event()

    def go_on(job: current.RunningJob) -> None:
        ended.wait(10)
        job.note_progress(7, None, "")
        said.set()

    def task() -> None:
        job = current.running_job.get()
        threading.Thread(target=go_on, args=(job,), daemon=True).start()

    bench.run(task)
    ended.set()

    assert said.wait(10)
    assert bench.said == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((-1,), "done=-1"),
        (("1",), "done='1'"),
        ((True,), "done=True"),
        ((float("nan"),), "done=nan"),
        ((1, float("inf")), "total=inf"),
        ((1, -5), "or None if it is not known"),
        ((1, 2, None), "a text of one line"),
    ],
)
def test_bad_progress_is_refused_inside_and_outside_of_a_job(
    bench: Bench, arguments: tuple[Any, ...], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        progress(*arguments)

    assert says in error_of(bench.run(lambda: progress(*arguments))).message


def test_the_error_names_its_position() -> None:
    error = CheckpointError("checkpoint()", 7)

    assert error.position == 7
    assert "enqueue a new job" in str(error)
