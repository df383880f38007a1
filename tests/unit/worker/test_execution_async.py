"""Async tasks alone in a child: one at a time, on a loop that stays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import pytest

from tidework.app import Tidework
from tidework.clock import ManualClock
from tidework.model.current import current_job
from tidework.model.endings import Retry
from tidework.model.identity import QueueName
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.model.values.kept_result import is_refused
from tidework.worker.child.execution import Execution
from tidework.worker.frames import JobFrame

seen: ContextVar[str] = ContextVar("seen", default="")


class Bench:
    """An Execution; ``run`` runs a function as a task in it."""

    def __init__(self) -> None:
        self._app = Tidework("test")
        self._execution = Execution(
            self._app.tasks, (QueueName("ns", "q"),), ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        )

    def run(self, function: Callable[..., Any], **params: Any) -> Outcome:
        name = f"t{len(self._app.tasks)}"
        self._app.task(name=name)(function)
        envelope = {"v": 1, "id": "j1", "task": name, "params": params, "created_at": 1}
        return self._execution.run(JobFrame(1, False, 0, 1, 3, 60, json.dumps(envelope).encode()))

    def close(self) -> None:
        if self._execution._loop is not None:
            self._execution._loop.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    found = Bench()
    yield found
    found.close()


def test_what_it_returns_is_the_result(bench: Bench) -> None:
    async def task(a: int) -> str:
        await asyncio.sleep(0)
        return f"{current_job().id} {a}"

    assert bench.run(task, a=7) == Outcome.complete(b'"j1 7"')


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), asyncio.CancelledError("x")])
def test_what_it_raises_is_a_failed_attempt(bench: Bench, error: BaseException) -> None:
    async def task() -> None:
        await asyncio.sleep(0)
        raise error

    outcome = bench.run(task)

    assert outcome.kind is OutcomeKind.RETRY
    found = JobError.decode(outcome.detail)
    assert found.type == type(error).__name__
    assert "execution.py" not in found.trace, "it begins with the task"
    assert "in task" in found.trace


def test_it_may_ask_for_another_attempt(bench: Bench) -> None:
    async def task() -> None:
        raise Retry("later")

    assert bench.run(task).kind is OutcomeKind.RETRY


def test_its_context_is_its_own(bench: Bench) -> None:
    async def task(value: str) -> str:
        found = seen.get()
        seen.set(value)
        await asyncio.sleep(0)
        return found + seen.get()

    assert bench.run(task, value="a") == Outcome.complete(b'"a"')
    assert bench.run(task, value="b") == Outcome.complete(b'"b"')
    assert seen.get() == ""


def test_the_loop_stays_and_what_a_job_left_running_does_not(bench: Bench) -> None:
    loops: list[asyncio.AbstractEventLoop] = []
    left: list[asyncio.Task[None]] = []

    async def task() -> None:
        loops.append(asyncio.get_running_loop())
        left.append(asyncio.create_task(asyncio.sleep(60)))

    bench.run(task)
    bench.run(task)

    assert loops[0] is loops[1]
    assert all(found.cancelled() for found in left)


def test_what_a_side_task_raises_does_not_end_the_job(bench: Bench) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    async def task() -> str:
        side = asyncio.create_task(leave())
        await asyncio.sleep(0.01)
        return "done" if side.done() else "not run"

    assert bench.run(task) == Outcome.complete(b'"done"')


def test_a_result_that_is_not_json_is_a_success_without_it(bench: Bench) -> None:
    async def task() -> object:
        return object()

    found = bench.run(task)

    assert found.kind is OutcomeKind.COMPLETE
    assert is_refused(found.detail)
