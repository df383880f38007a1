"""What a running job is told: to be cancelled, to be released; and what becomes of it."""

from __future__ import annotations

import asyncio
import json

from tests.unit.sdk.long_jobs import (
    QUEUE,
    LongJob,
    Walker,
    both,
    long_job,
)
from tidework import CancelRequested, checkpoint, current_job
from tidework.app import Tidework
from tidework.broker.connection.transport import drive
from tidework.model.lease import ExchangeRequest
from tidework.model.outcome import Outcome, OutcomeKind
from tidework.worker.child.execution import STOPPED, Execution
from tidework.worker.frames import Cancel, JobFrame, Release, Stop

__all__ = ["long_job"]


@both
def test_a_job_that_is_asked_back_ends_after_its_item(long_job: LongJob, is_async: bool) -> None:
    walker = Walker([1, 2, 3], lambda item: long_job.tell(Release) if item == 2 else None)
    task = walker.task(is_async=is_async)

    outcome = long_job.run(task)

    assert outcome.kind is OutcomeKind.RELEASE
    assert not outcome.delay
    assert "goes on elsewhere" in outcome.cause
    assert walker.done == [1, 2]
    walker.at = lambda _item: None
    assert long_job.run(task) == Outcome.complete(b"[1,2,3]")


@both
def test_a_cancel_waits_for_the_end_of_the_item(long_job: LongJob, is_async: bool) -> None:
    seen: list[bool] = []

    def at(_item: int) -> None:
        long_job.tell(Cancel)
        seen.append(current_job().cancel_requested)

    walker = Walker([1, 2, 3], at)

    assert long_job.run(walker.task(is_async=is_async)) == STOPPED
    assert walker.done == [1]
    assert seen == [True]


def test_an_item_that_takes_too_long_is_interrupted(long_job: LongJob) -> None:
    def at(_item: int) -> None:
        long_job.tell(Cancel)
        long_job.tell(Stop)

    walker = Walker([1, 2], at)

    assert long_job.run(walker.task(is_async=False)) == STOPPED
    assert walker.done == []


def test_whoever_swallows_it_meets_it_again_at_the_next_item(long_job: LongJob) -> None:
    done = []

    def task() -> None:
        items = [1, 2, 3]
        for item in checkpoint(items):
            done.append(item)
            try:
                long_job.tell(Cancel)
                long_job.tell(Stop)
            except CancelRequested:
                continue

    assert long_job.run(task) == STOPPED
    assert done == [1]


def test_a_cancel_is_raised_in_the_handler_at_once_and_once(long_job: LongJob) -> None:
    met: list[str] = []

    def task() -> str:
        try:
            long_job.tell(Cancel)
        except Exception:
            met.append("Exception")
        except CancelRequested:
            met.append("CancelRequested")
        long_job.tell(Cancel)
        long_job.tell(Stop)
        return "a result that nobody wants"

    assert long_job.run(task) == STOPPED
    assert met == ["CancelRequested"]


def test_an_async_handler_is_cancelled(long_job: LongJob) -> None:
    met: list[str] = []

    async def task() -> None:
        long_job.tell(Cancel)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            met.append("cancelled")
            await asyncio.sleep(0)  # its cleanup is not disturbed
            met.append("cleaned up")
            raise

    assert long_job.run(task) == STOPPED
    assert met == ["cancelled", "cleaned up"]


def test_what_is_told_before_the_job_begins_is_not_lost(long_job: LongJob) -> None:
    ran: list[int] = []
    drive(long_job.broker.exchange(QUEUE, ExchangeRequest("w", 1, 0)))
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


def test_what_is_told_after_the_end_changes_nothing(long_job: LongJob) -> None:
    outcome = long_job.run(lambda: None)
    long_job.tell(Cancel)
    long_job.tell(Stop)

    assert outcome == Outcome.complete()
