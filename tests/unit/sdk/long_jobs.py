"""Long jobs without processes: a queue in memory, an Execution, and a task that walks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tidework import checkpoint
from tidework.app import Tidework
from tidework.broker.connection.transport import drive
from tidework.client import Client
from tidework.clock import ManualClock
from tidework.model import current
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest, Lease, Settlement
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.model.progress import ProgressNote
from tidework.testing.memory.broker import MemoryBroker
from tidework.worker.child.execution import Execution
from tidework.worker.frames import JobFrame, JobOrder

QUEUE = QueueName("ns", "q")


class LongJob:
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
def long_job(monkeypatch: pytest.MonkeyPatch) -> LongJob:
    found = LongJob()
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
