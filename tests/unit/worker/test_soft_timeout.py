"""Soft timeouts: raised inside the handler, once, and never in what comes after it."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.support.logs import lines
from tests.unit.worker.function_runner import FunctionRunner
from tidework import SoftTimeout
from tidework.app import Tidework
from tidework.errors import ConfigurationError
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.model.task import TaskSpec
from tidework.worker.child.command_end import Attempts, CommandEnd, outcome_of
from tidework.worker.child.soft_timeout import SHARE, soft_seconds

pytestmark = pytest.mark.timeout(60, method="thread")  # the other method is SIGALRM as well

SOFT = 0.05
LONG = 30.0


class HurriedRunner(FunctionRunner):
    """Its tasks have a soft timeout, unless another is given."""

    def run(
        self, function: Callable[..., Any], *, soft: float | None = SOFT, **more: Any
    ) -> Outcome:
        return super().run(function, soft=soft, **more)


@pytest.fixture
def runner() -> Iterator[HurriedRunner]:
    found = HurriedRunner()
    yield found
    found.close()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0), "a timer is left"
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL, "a handler is left"


def spin() -> None:
    """Until something is raised, or so long that a test fails for it."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        pass


def cause_of(outcome: Outcome) -> tuple[str, str]:
    error = JobError.decode(outcome.detail)
    return error.type, error.cause


@pytest.mark.parametrize("wait", [spin, lambda: time.sleep(LONG)], ids=["computing", "sleeping"])
def test_a_sync_handler_gets_it_and_may_end_in_order(
    runner: HurriedRunner, wait: Callable[[], None]
) -> None:
    def task() -> str:
        try:
            wait()
        except SoftTimeout as error:
            return f"half, after {error.seconds}"
        return "whole"

    assert runner.run(task) == Outcome.complete(b'"half, after 0.05"')


def test_an_async_handler_gets_it_and_may_await_its_cleanup(runner: HurriedRunner) -> None:
    async def task() -> str:
        try:
            await asyncio.sleep(LONG)
        except SoftTimeout as error:
            await asyncio.sleep(0)
            current = asyncio.current_task()
            assert current is not None
            return f"half, after {error.seconds}, cancelling {current.cancelling()}"
        return "whole"

    assert runner.run(task) == Outcome.complete(b'"half, after 0.05, cancelling 0"')


def test_uncaught_it_is_a_failed_attempt_with_its_cause(runner: HurriedRunner) -> None:
    ended: list[str] = []

    def sync() -> None:
        try:
            spin()
        finally:
            ended.append("sync")

    async def awaiting() -> None:
        try:
            await asyncio.sleep(LONG)
        finally:
            ended.append("async")

    for task in (sync, awaiting):
        first, last = runner.run(task), runner.run(task, attempt=3)
        assert (first.kind, last.kind) == (OutcomeKind.RETRY, OutcomeKind.BURY)
        assert cause_of(first) == cause_of(last) == ("SoftTimeout", "soft_timeout")
        assert "soft timeout of 0.05 s" in JobError.decode(first.detail).message
    assert ended == ["sync", "sync", "async", "async"]


def test_tasks_of_a_group_end_with_it(runner: HurriedRunner) -> None:
    ended: list[str] = []

    async def beside() -> None:
        try:
            await asyncio.sleep(LONG)
        finally:
            ended.append("beside")

    async def in_body() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(beside())
            await asyncio.sleep(LONG)

    async def after_body() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(beside())

    async def gathered() -> None:
        await asyncio.gather(beside(), beside())

    for task in (in_body, after_body, gathered):
        assert cause_of(runner.run(task)) == ("SoftTimeout", "soft_timeout")
    assert ended == ["beside"] * 4


def test_a_handler_that_disregards_it_goes_on_and_is_told_once(runner: HurriedRunner) -> None:
    def sync() -> str:
        try:
            spin()
        except Exception:
            time.sleep(3 * SOFT)
        return "on"

    async def awaiting() -> str:
        try:
            await asyncio.sleep(LONG)
        except SoftTimeout:
            await asyncio.sleep(3 * SOFT)
        return "on"

    assert runner.run(sync) == runner.run(awaiting) == Outcome.complete(b'"on"')


def test_what_ends_in_time_leaves_nothing_for_the_next(runner: HurriedRunner) -> None:
    async def quick() -> None:
        await asyncio.sleep(0)

    async def next_one() -> str:
        await asyncio.sleep(3 * SOFT)
        return "whole"

    def next_sync() -> str:
        time.sleep(3 * SOFT)
        return "whole"

    runner.run(lambda: None)
    runner.run(quick)
    assert runner.run(next_sync, soft=None) == Outcome.complete(b'"whole"')
    assert runner.run(next_one, soft=None) == Outcome.complete(b'"whole"')


def test_a_handler_that_fails_is_judged_by_its_own_error(runner: HurriedRunner) -> None:
    def sync() -> None:
        try:
            spin()
        except SoftTimeout as error:
            raise ValueError("half") from error

    assert cause_of(runner.run(sync)) == ("ValueError", "exception")


def test_a_cancellation_of_another_reason_stays_one(runner: HurriedRunner) -> None:
    async def task() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(LONG)
        except TimeoutError:
            return "own"
        return "whole"

    assert runner.run(task, soft=LONG) == Outcome.complete(b'"own"')


def test_a_task_without_one_touches_no_signal(runner: HurriedRunner, monkeypatch: Any) -> None:
    def refuse(*_given: object) -> None:
        raise AssertionError("a timer without need")

    monkeypatch.setattr(signal, "setitimer", refuse)

    assert runner.run(lambda: "done", soft=None) == Outcome.complete(b'"done"')


@pytest.mark.parametrize("soft", [0, -1, timedelta(0), 30, timedelta(minutes=1)])
def test_one_that_is_not_between_0_and_the_timeout_is_refused(soft: Any) -> None:
    app = Tidework("test")

    with pytest.raises(ConfigurationError, match="soft timeout"):
        app.task(name="t", timeout=30, soft_timeout=soft)(lambda: None)
    with pytest.raises(ConfigurationError, match="soft timeout"):
        app.command("c", ["true"], timeout=30, soft_timeout=soft)


def test_one_above_the_queues_hard_timeout_comes_a_bit_before_that_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spec = TaskSpec("clipped", "q", soft_timeout=timedelta(minutes=20))

    found = [soft_seconds(spec, 600.0) for _ in range(3)]

    assert found == [600 * SHARE] * 3
    (told,) = lines(caplog, "soft_timeout_clipped")
    assert "task clipped" in told["message"]
    assert "hardTimeoutSeconds" in told["message"]


def test_it_travels_with_the_task() -> None:
    spec = TaskSpec("t", "q", soft_timeout=timedelta(seconds=5))

    assert TaskSpec.from_document(json.loads(json.dumps(spec.to_document()))) == spec


def test_a_command_that_ends_after_its_soft_timeout_says_so() -> None:
    attempts = Attempts(1, 3, TaskSpec("t", "q").retry, lambda: 0.0)

    found = outcome_of(CommandEnd(-15, None, "", 5.0), attempts)

    assert found.kind is OutcomeKind.RETRY
    assert cause_of(found) == ("CommandFailed", "soft_timeout")
    assert "after SIGTERM at the soft timeout of 5 s" in JobError.decode(found.detail).message
