"""Async tasks alone in a child: one at a time, on a loop that stays."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from tests.unit.worker.function_runner import FunctionRunner
from tidework.model.current import current_job
from tidework.model.endings import Retry
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.model.values.kept_result import is_refused

seen: ContextVar[str] = ContextVar("seen", default="")


@pytest.fixture
def runner() -> Iterator[FunctionRunner]:
    found = FunctionRunner()
    yield found
    found.close()


def test_what_it_returns_is_the_result(runner: FunctionRunner) -> None:
    async def task(a: int) -> str:
        await asyncio.sleep(0)
        return f"{current_job().id} {a}"

    assert runner.run(task, a=7) == Outcome.complete(b'"j1 7"')


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), asyncio.CancelledError("x")])
def test_what_it_raises_is_a_failed_attempt(runner: FunctionRunner, error: BaseException) -> None:
    async def task() -> None:
        await asyncio.sleep(0)
        raise error

    outcome = runner.run(task)

    assert outcome.kind is OutcomeKind.RETRY
    found = JobError.decode(outcome.detail)
    assert found.type == type(error).__name__
    assert "execution.py" not in found.trace, "it begins with the task"
    assert "in task" in found.trace


def test_it_may_ask_for_another_attempt(runner: FunctionRunner) -> None:
    async def task() -> None:
        raise Retry("later")

    assert runner.run(task).kind is OutcomeKind.RETRY


def test_its_context_is_its_own(runner: FunctionRunner) -> None:
    async def task(value: str) -> str:
        found = seen.get()
        seen.set(value)
        await asyncio.sleep(0)
        return found + seen.get()

    assert runner.run(task, value="a") == Outcome.complete(b'"a"')
    assert runner.run(task, value="b") == Outcome.complete(b'"b"')
    assert seen.get() == ""


def test_the_loop_stays_and_what_a_job_left_running_does_not(runner: FunctionRunner) -> None:
    loops: list[asyncio.AbstractEventLoop] = []
    left: list[asyncio.Task[None]] = []

    async def task() -> None:
        loops.append(asyncio.get_running_loop())
        left.append(asyncio.create_task(asyncio.sleep(60)))

    runner.run(task)
    runner.run(task)

    assert loops[0] is loops[1]
    assert all(found.cancelled() for found in left)


def test_what_a_side_task_raises_does_not_end_the_job(runner: FunctionRunner) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    async def task() -> str:
        side = asyncio.create_task(leave())
        await asyncio.sleep(0.01)
        return "done" if side.done() else "not run"

    assert runner.run(task) == Outcome.complete(b'"done"')


def test_a_result_that_is_not_json_is_a_success_without_it(runner: FunctionRunner) -> None:
    async def task() -> object:
        return object()

    found = runner.run(task)

    assert found.kind is OutcomeKind.COMPLETE
    assert is_refused(found.detail)
