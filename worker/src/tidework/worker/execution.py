"""One attempt: an envelope in, an Outcome out. Runs inside a child.

Whatever the task does short of ending the process becomes an Outcome: an exception of any kind,
SystemExit and KeyboardInterrupt included, is a failed attempt and not the death of the child.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from datetime import timedelta
from random import random
from typing import Any, Protocol

from tidework.clock import Clock, SystemClock
from tidework.errors import EnvelopeError, ParamsError, UnknownTaskError
from tidework.logs import job_fields
from tidework.model.current import CurrentJob, running_job
from tidework.model.endings import Bury, Retry
from tidework.model.identity import QueueName
from tidework.model.job import Job, decode_job
from tidework.model.outcome import JobError, Outcome
from tidework.model.strict_json import encode_json
from tidework.model.task import Signature, TaskSpec
from tidework.worker.frames import JobFrame

RESULT_LIMIT = 1024 * 1024
LONGEST_DELAY = timedelta(days=3660)
"""Of an attempt that a task asks for. Due times beyond what a datetime holds could not be read."""

logger = logging.getLogger(__name__)


class Runnable(Protocol):
    """What execution needs of a task."""

    @property
    def spec(self) -> TaskSpec:
        """Its name and bounds."""

    @property
    def signature(self) -> Signature:
        """Turns params into arguments."""

    @property
    def function(self) -> Callable[..., Any]:
        """Its code."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """An exception of the task, to be judged outside of its context."""

    error: BaseException


class Execution:
    """Runs attempts of an application's tasks.

    queues: the worker's queues, as JobFrame.queue counts them
    """

    def __init__(
        self,
        tasks: Mapping[str, Runnable],
        queues: tuple[QueueName, ...],
        clock: Clock | None = None,
    ) -> None:
        self._tasks = tasks
        self._queues = queues
        self._clock = clock or SystemClock()

    def run(self, frame: JobFrame) -> Outcome:
        """Run one attempt to its end."""
        try:
            job = decode_job(frame.body, new_id="unnamed", now=0.0)
        except EnvelopeError as error:
            return Outcome.bury(JobError("EnvelopeError", str(error), cause="invalid"))
        task = self._tasks.get(job.task)
        if task is None:
            # The supervisor knew it a moment ago: template and child differ, as in a rolling
            # change of the code on disk. Somebody else may know it.
            unknown = UnknownTaskError(job.task, tuple(self._tasks))
            logger.warning("%s", unknown, extra={"job_id": job.id})
            return Outcome.release(timedelta(seconds=1))
        try:
            arguments = task.signature.to_arguments(job.params)
        except ParamsError as error:
            return Outcome.bury(JobError("ParamsError", str(error), cause="invalid_params"))
        # A context of its own: nothing that this job sets is seen by the next.
        ended = copy_context().run(self._call, task, job, arguments, frame)
        if isinstance(ended, _Failure):
            return judge(ended.error, task.spec, frame)
        return _to_outcome(job.task, ended)

    def _call(self, task: Runnable, job: Job, arguments: dict[str, Any], frame: JobFrame) -> Any:
        queue = self._queues[frame.queue]
        running_job.set(
            CurrentJob(
                id=job.id,
                task=job.task,
                queue=queue.name,
                namespace=queue.namespace,
                attempt=frame.attempt,
                max_attempts=frame.max_attempts,
                deadline=self._clock.now() + timedelta(seconds=frame.timeout),
            )
        )
        job_fields.set(
            {"job_id": job.id, "task": job.task, "queue": queue.name, "attempt": frame.attempt}
        )
        try:
            result = task.function(**arguments)
        except BaseException as error:  # noqa: BLE001 - see the module's docstring
            return _Failure(error)
        logger.info("job succeeded")
        return result


def judge(error: BaseException, spec: TaskSpec, frame: JobFrame) -> Outcome:
    """The Outcome of an attempt that raised ``error``."""
    if isinstance(error, Bury):
        return Outcome.bury(JobError("Bury", str(error), cause="bury"))
    if isinstance(error, Retry):
        failure = JobError("Retry", str(error) or "the task asked for another attempt")
        if error.delay is not None and frame.attempt < frame.max_attempts:
            delay = min(max(error.delay, timedelta(0)), LONGEST_DELAY)
            return Outcome.retry(failure, delay)
    else:
        failure = JobError(type(error).__name__, _text_of(error), _trace_of(error))
    return spec.retry.after_failure(failure, frame.attempt, frame.max_attempts, random)


def _to_outcome(task: str, result: object) -> Outcome:
    if result is None:
        return Outcome.complete()
    try:
        encoded = encode_json(result, field="")
    except EnvelopeError as error:
        reason = f"task {task} returned {type(result).__name__}: {error}, or return nothing"
        return Outcome.bury(JobError("ResultError", reason, cause="invalid_result"))
    if len(encoded) > RESULT_LIMIT:
        reason = (
            f"task {task} returned {len(encoded)} bytes of JSON, the limit is {RESULT_LIMIT}; "
            "store the data elsewhere and return a reference to it"
        )
        return Outcome.bury(JobError("ResultError", reason, cause="invalid_result"))
    return Outcome.complete(encoded)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as fault:  # noqa: BLE001 - an exception whose __str__ raises is still a failure
        return f"its text cannot be read: {fault!r}"


def _trace_of(error: BaseException) -> str:
    """The traceback as text, from the task's own first frame on."""
    trace = error.__traceback__
    own = trace.tb_next if trace is not None else None
    try:
        return "".join(traceback.format_exception(type(error), error, own or trace))
    except Exception as fault:  # noqa: BLE001 - out of memory, a hostile __str__
        return f"the traceback cannot be shown: {fault!r}"
