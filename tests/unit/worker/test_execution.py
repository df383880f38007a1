"""One attempt: whatever the task does becomes the right Outcome."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.logs import lines
from tidework.app import Tidework
from tidework.clock import ManualClock
from tidework.errors import CancelRequested
from tidework.logs import JsonFormatter, job_fields
from tidework.model.current import current_job, running_job
from tidework.model.endings import Bury, Retry
from tidework.model.identity import QueueName
from tidework.model.outcome import LONGEST_DELAY, RESULT_LIMIT, JobError, Outcome, OutcomeKind
from tidework.model.values.kept_result import kept_result
from tidework.worker.child.execution import Execution
from tidework.worker.frames import Cancel, JobFrame

QUEUE = QueueName("ns", "emails")
START = datetime(2026, 1, 1, tzinfo=UTC)


def run(
    function: Callable[..., Any],
    params: dict[str, Any] | None = None,
    *,
    attempt: int = 1,
    max_attempts: int = 3,
    body: bytes | None = None,
    **options: Any,
) -> Outcome:
    app = Tidework("test")
    app.task(name="t", **options)(function)
    envelope = {"v": 1, "id": "j1", "task": "t", "params": params or {}, "created_at": 1}
    frame = JobFrame(
        number=1,
        ahead=False,
        queue=0,
        attempt=attempt,
        max_attempts=max_attempts,
        timeout=60,
        body=json.dumps(envelope).encode() if body is None else body,
    )
    return Execution(app.tasks, (QUEUE,), ManualClock(START)).run(frame)


def error_of(outcome: Outcome) -> JobError:
    return JobError.decode(outcome.detail)


def fail(error: BaseException) -> Callable[[], None]:
    def task() -> None:
        raise error

    return task


def test_a_result_is_json() -> None:
    def task(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    assert run(task, {"a": 1, "b": 2}) == Outcome.complete(b'{"sum":3}')


def test_no_result_is_no_bytes() -> None:
    assert run(lambda: None) == Outcome.complete(b"")


@pytest.mark.parametrize("result", [object(), {1, 2}, float("nan"), b"bytes", lambda: 1])
def test_a_result_that_is_not_json_is_a_success_without_it(result: object) -> None:
    found = run(lambda: result)

    assert found.kind is OutcomeKind.COMPLETE
    assert "task t returned" in kept_result(found.detail).refusal


def test_a_result_above_the_limit_is_a_success_without_it() -> None:
    found = run(lambda: "x" * RESULT_LIMIT)

    assert found.kind is OutcomeKind.COMPLETE
    assert str(RESULT_LIMIT) in kept_result(found.detail).refusal
    assert len(found.detail) < 2000


def test_an_exception_is_retried_after_the_policys_delay() -> None:
    found = run(fail(ValueError("no such address")), delays=[7])

    error = error_of(found)
    assert found.kind is OutcomeKind.RETRY
    assert timedelta(seconds=7) <= found.delay <= timedelta(seconds=7.7)
    assert (error.type, error.message, error.cause) == (
        "ValueError",
        "no such address",
        "exception",
    )
    assert error.trace.startswith("Traceback")
    assert "raise error" in error.trace
    assert "tidework/worker/child/execution.py" not in error.trace, (
        "the worker's own frames are noise"
    )


def test_the_last_attempt_is_buried() -> None:
    found = run(fail(ValueError("x")), attempt=3)

    assert found.kind is OutcomeKind.BURY
    assert error_of(found).type == "ValueError"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit("g")])
def test_leaving_the_interpreter_is_a_failed_attempt(error: BaseException) -> None:
    found = run(fail(error))

    assert found.kind is OutcomeKind.RETRY
    assert error_of(found).type == type(error).__name__


def test_bury_is_final() -> None:
    found = run(fail(Bury("it does not parse")))

    assert found.kind is OutcomeKind.BURY
    assert error_of(found).message == "it does not parse"
    assert error_of(found).cause == "bury"


def test_retry_names_its_own_delay() -> None:
    found = run(fail(Retry("not yet", delay=timedelta(seconds=90))))

    assert (found.kind, found.delay) == (OutcomeKind.RETRY, timedelta(seconds=90))
    assert error_of(found).message == "not yet"


def test_retry_without_a_delay_uses_the_policys() -> None:
    found = run(fail(Retry()), delays=[40])

    assert found.kind is OutcomeKind.RETRY
    assert found.delay >= timedelta(seconds=40)


def test_retry_on_the_last_attempt_is_buried() -> None:
    found = run(fail(Retry("again", delay=timedelta(seconds=1))), attempt=3)

    assert found.kind is OutcomeKind.BURY


def test_params_that_do_not_fit_are_buried_at_once() -> None:
    def task(count: int) -> None:
        raise AssertionError("not to be called")

    found = run(task, {"count": "many"})

    assert found.kind is OutcomeKind.BURY
    assert error_of(found).cause == "invalid_params"
    assert "count" in error_of(found).message


def test_a_broken_envelope_is_buried() -> None:
    found = run(lambda: None, body=b'{"id": "j1"')

    assert found.kind is OutcomeKind.BURY
    assert error_of(found).cause == "invalid"


def test_a_task_that_only_the_supervisor_knows_is_given_back() -> None:
    found = run(lambda: None, body=b'{"id": "j1", "task": "other"}')

    reason = "unknown task 'other'; this application has: t"
    assert found == Outcome.release(timedelta(seconds=1), reason)


def test_the_task_sees_its_job_and_leaves_no_trace_of_it() -> None:
    seen = []

    def task() -> None:
        seen.append((current_job(), job_fields.get()))

    run(task, attempt=2)

    ((job, fields),) = seen
    assert (job.id, job.task, job.queue, job.namespace) == ("j1", "t", "emails", "ns")
    assert (job.attempt, job.max_attempts) == (2, 3)
    assert job.deadline == START + timedelta(seconds=60)
    assert fields == {"job_id": "j1", "task": "t", "queue": "emails", "attempt": 2}
    assert running_job.get() is None
    assert job_fields.get() is None


def test_an_exception_that_cannot_be_shown_is_still_a_failure() -> None:
    class Hostile(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError("no text for you")

    found = run(fail(Hostile()))

    assert found.kind is OutcomeKind.RETRY
    assert error_of(found).type == "Hostile"


def test_endless_recursion_is_a_failure() -> None:
    def task() -> None:
        task()

    found = run(task)

    assert error_of(found).type == "RecursionError"
    assert len(found.detail) < 100_000


def test_success_is_logged_with_the_jobs_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    run(lambda: sys.version)

    (line,) = (json.loads(JsonFormatter({}).format(record)) for record in caplog.records)
    expected = {"event": "job_succeeded", "job_id": "j1", "task": "t", "queue": "emails"}
    assert expected.items() <= line.items()
    assert line["attempt"] == 1
    assert line["run_seconds"] >= 0


def test_a_result_that_is_refused_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    def strange() -> Any:
        return object()

    run(strange)
    run(lambda: "x" * RESULT_LIMIT)

    told = lines(caplog, "result_refused")
    assert [line["levelname"] for line in told] == ["WARNING"] * 2
    assert all("task t returned" in line["message"] for line in told)
    assert {line["job_id"] for line in told} == {"j1"}


def test_what_returns_after_it_was_cancelled_is_no_success_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    app = Tidework("test")

    @app.task(name="t")
    def stubborn() -> str:
        with contextlib.suppress(CancelRequested):
            execution.tell(Cancel(1))
        return "all the same"

    execution = Execution(app.tasks, (QUEUE,), ManualClock(START))
    envelope = {"v": 1, "id": "j1", "task": "t", "params": {}, "created_at": 1}
    body = json.dumps(envelope).encode()
    frame = JobFrame(
        number=1, ahead=False, queue=0, attempt=1, max_attempts=3, timeout=60, body=body
    )

    assert execution.run(frame).kind is OutcomeKind.CANCELLED

    assert not caplog.records


@pytest.mark.parametrize("delay", [5, 5.0, timedelta(seconds=5)])
def test_a_retry_takes_seconds_as_all_that_take_a_span_do(delay: float | timedelta) -> None:
    def come_back() -> None:
        raise Retry("not yet", delay=delay)

    assert run(come_back).delay == timedelta(seconds=5)


@pytest.mark.parametrize("delay", ["5", math.nan, math.inf])
def test_a_delay_that_is_none_is_a_failed_attempt(delay: Any) -> None:
    def come_back() -> None:
        raise Retry("not yet", delay=delay)

    error = error_of(run(come_back))

    assert error.type == "ConfigurationError"
    assert error.message.startswith(f"Retry: delay={delay!r}: give seconds")


class Careless(Retry):
    """Calls no ``super().__init__()``, and has no text."""

    def __init__(self) -> None:
        """Set nothing."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Speechless(Bury):
    """Has no text either."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_careless_subclasses_are_outcomes_as_well() -> None:
    def changed() -> None:
        error = Retry("later")
        error.delay = "soon"  # type: ignore[assignment]
        raise error

    assert run(fail(Careless()), delays=[40]).kind is OutcomeKind.RETRY
    assert run(changed, delays=[40]).kind is OutcomeKind.RETRY
    assert run(fail(Speechless())).kind is OutcomeKind.BURY


def test_an_absurd_delay_is_bounded() -> None:
    def fail_for_ever() -> None:
        raise Retry("later", delay=timedelta.max)

    assert run(fail_for_ever).delay == LONGEST_DELAY
