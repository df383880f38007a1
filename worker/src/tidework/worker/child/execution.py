"""One attempt: an envelope in, an Outcome out. Runs inside a child.

Whatever the task does short of ending the process becomes an Outcome: an exception of any kind,
SystemExit and KeyboardInterrupt included, is a failed attempt and not the death of the child.
"""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable, Mapping
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from random import random
from typing import Any, NamedTuple, NoReturn, Protocol

from tidework.clock import Clock, SystemClock
from tidework.errors import CancelRequested, EnvelopeError, ParamsError, UnknownTaskError
from tidework.logs import job_fields
from tidework.model.command import Command
from tidework.model.current import CurrentJob, Later, RunningJob, call_later, running_job
from tidework.model.endings import Bury, Retry, release_in
from tidework.model.identity import QueueName
from tidework.model.job import Job, decode_stored_job
from tidework.model.lease import Lease
from tidework.model.outcome import LONGEST_DELAY, JobError, Outcome, OutcomeKind
from tidework.model.task import TaskSpec
from tidework.model.values.kept_result import is_refused, kept_result
from tidework.model.values.signature import Signature
from tidework.worker.admission import again_after
from tidework.worker.child.command_end import Attempts
from tidework.worker.child.command_input import document_of, variables_of
from tidework.worker.child.command_run import Leader, attempt_command
from tidework.worker.child.job_loop import JobLoop
from tidework.worker.child.soft_timeout import Limited, call_limited, is_soft_timeout, soft_seconds
from tidework.worker.frames import Cancel, JobFrame, JobOrder, Release

_COMPLETE = Outcome.complete()
_own_name = type.__dict__["__name__"].__get__
STOPPED = Outcome.cancelled()
"""Of an attempt that was told to end, whatever it did then; the supervisor knows why."""

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
    def is_async(self) -> bool:
        """Does calling it give an awaitable?"""

    @property
    def function(self) -> Callable[..., Any]:
        """Its code."""

    @property
    def command(self) -> Command | None:
        """What is run instead of the code."""


class Call(NamedTuple):
    """A task with its arguments, ready to be called.

    began: monotonic seconds; running: the job as its code will see it
    """

    task: Runnable
    arguments: dict[str, Any]
    job: Job
    frame: JobFrame
    began: float
    running: RunningJob


class _Failure(NamedTuple):
    """An exception of the task, to be judged outside of its context."""

    error: BaseException


Say = Callable[[int, bytes, bytes, bool], bool]
"""See model/current.py; with the number of the job in front."""


def _say_nothing(_number: int, _progress: bytes, _positions: bytes, _last: bool) -> bool:  # noqa: FBT001
    return True


class Execution:
    """Runs attempts of an application's tasks.

    queues: the worker's queues, as JobFrame.queue counts them
    entered: what tells in the log of the job that began last
    say:    where goes what jobs say of themselves; later: how what is held back goes there
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
        self._loop: JobLoop | None = None
        self._alone: tuple[int, RunningJob] | None = None
        self._early: dict[int, JobOrder] = {}
        self.entered: Mapping[str, Any] = {}
        self.say: Say = _say_nothing
        self.later: Later = call_later

    def tell(self, order: JobOrder) -> None:
        """An order about the job that ``run`` is at, or will be, or was; in the main thread. May
        raise CancelRequested, which is meant for that job."""
        if self._alone is None or self._alone[0] != order.number:
            self._early[order.number] = order
            return
        running = self._alone[1]
        if isinstance(order, Release):
            running.release_requested = True
        elif isinstance(order, Cancel):
            running.cancel()
        else:
            running.stop()

    def run(self, frame: JobFrame) -> Outcome:
        """Run one attempt to its end, with nobody beside it."""
        call = self.prepare(frame)
        if isinstance(call, Outcome):
            return call
        self._alone = frame.number, call.running
        if self._early:
            early = self._early.pop(frame.number, None)
            self._early = {n: order for n, order in self._early.items() if n > frame.number}
            if early is not None:
                self.tell(early)
        try:
            return self._close(call, self._run_alone(call))
        finally:
            self._alone = None

    def _run_alone(self, call: Call) -> Outcome:
        # A context of its own: nothing that this job sets is seen by the next.
        context = copy_context()
        if call.task.command is not None:
            return context.run(self._run_command, call, call.task.command)
        if call.task.is_async:
            self._loop = self._loop or JobLoop()
            call.running.interrupt = self._loop.cancel
            ended = self._loop.run(self._await(call), context)
        else:
            ended = context.run(self._call, call)
        return _outcome_of(call, ended)

    async def run_shared(self, call: Call) -> Outcome:
        """Run one attempt of an async task beside others; in an asyncio task of its own.

        ``call.running.interrupt`` is the caller's.
        """
        return self._close(call, _outcome_of(call, await self._await(call)))

    def prepare(self, frame: JobFrame) -> Call | Outcome:
        """Read the job and check its params; or how it ends if it cannot be run."""
        try:
            job = decode_stored_job(frame.body)
        except EnvelopeError as error:
            return Outcome.bury(JobError("EnvelopeError", str(error), cause="invalid"))
        task = self._tasks.get(job.task)
        if task is None:
            # The supervisor knew it a moment ago: template and child differ, as in a rolling
            # change of the code on disk. Somebody else may know it.
            unknown = UnknownTaskError(job.task, tuple(self._tasks))
            logger.warning(
                "%s", unknown, extra={"event": "job_unknown", **self._fields_of(job, frame)}
            )
            return Outcome.release(timedelta(seconds=1), str(unknown))
        try:
            arguments = task.signature.to_arguments(job.params, job.unions)
        except ParamsError as error:
            return Outcome.bury(JobError("ParamsError", str(error), cause="invalid_params"))
        except BaseException as error:  # noqa: BLE001 - of a model's own code (validators)
            return judge(error, task.spec, frame)
        began = self._clock.monotonic()
        running = RunningJob(
            partial(self._describe, job, frame, began),
            partial(self.say, frame.number),
            self.later,
        )
        return Call(task, arguments, job, frame, began, running)

    def _call(self, call: Call) -> Any:
        self._enter(call)
        running = call.running
        try:
            soft = soft_seconds(call.task.spec, call.frame.timeout)
            running.interrupt = _raise_cancel
            try:
                if running.stopped:
                    _raise_cancel()
                if soft is None:
                    result = call.task.function(**call.arguments)
                else:
                    result = call_limited(partial(call.task.function, **call.arguments), soft)
            finally:
                running.over = True
        except BaseException as error:  # noqa: BLE001 - see the module's docstring
            return _Failure(error)
        return result

    def _run_command(self, call: Call, command: Command) -> Outcome:
        self._enter(call)
        frame, spec, running = call.frame, call.task.spec, call.running
        leader = Leader(running)
        attempts = Attempts(frame.attempt, frame.max_attempts, spec.retry, random)
        try:
            described = running.describe()
            document = document_of(call.job, call.arguments, described, frame.timeout)
            variables = variables_of(command, described, os.environ)
            soft = soft_seconds(spec, frame.timeout)
            return attempt_command(command, variables, document, attempts, soft, leader)
        except BaseException as error:  # noqa: BLE001 - see the module's docstring
            return judge(error, spec, frame)

    async def _await(self, call: Call) -> Any:
        self._enter(call)
        try:
            if call.running.stopped:
                _raise_cancel()
            coroutine = call.task.function(**call.arguments)
            soft = soft_seconds(call.task.spec, call.frame.timeout)
            try:
                result = await (coroutine if soft is None else Limited(coroutine, soft))
            finally:
                call.running.over = True
        except BaseException as error:  # noqa: BLE001 - see the module's docstring
            return _Failure(error)
        return result

    def _close(self, call: Call, outcome: Outcome) -> Outcome:
        """The attempt is over: whatever it did after it was told to end, it is stopped."""
        call.running.end()
        if call.running.stopped:
            return STOPPED
        if outcome.kind is OutcomeKind.COMPLETE:
            self._tell_success(call, outcome)
        return outcome

    def _tell_success(self, call: Call, outcome: Outcome) -> None:
        """Not before the end: a result may be refused. Outside of the job's context, at times."""
        is_without = is_refused(outcome.detail)
        if not is_without and not logger.isEnabledFor(logging.INFO):
            return
        seconds = round(self._clock.monotonic() - call.began, 3)
        event = "result_refused" if is_without else "job_succeeded"
        extra = self._fields_of(call.job, call.frame) | {"event": event, "run_seconds": seconds}
        if is_without:
            refusal = kept_result(outcome.detail).refusal
            logger.warning("job succeeded without its result: %s", refusal, extra=extra)
        else:
            logger.info("job succeeded", extra=extra)

    def _fields_of(self, job: Job, frame: JobFrame) -> dict[str, Any]:
        return {
            "job_id": job.id,
            "task": job.task,
            "queue": self._queues[frame.queue].name,
            "attempt": frame.attempt,
        }

    def _enter(self, call: Call) -> None:
        running_job.set(call.running)
        self.entered = self._fields_of(call.job, call.frame)
        job_fields.set(self.entered)

    def _describe(self, job: Job, frame: JobFrame, began: float, running: RunningJob) -> CurrentJob:
        queue = self._queues[frame.queue]
        left = began + frame.timeout - self._clock.monotonic()
        return CurrentJob(
            id=job.id,
            task=job.task,
            queue=queue.name,
            namespace=queue.namespace,
            attempt=frame.attempt,
            max_attempts=frame.max_attempts,
            deadline=self._clock.now() + timedelta(seconds=left),
            lease=Lease(job.id, frame.token),
            cancel_requested=running.cancel_requested,
        )


def _raise_cancel() -> NoReturn:
    raise CancelRequested


def judge(error: BaseException, spec: TaskSpec, frame: JobFrame) -> Outcome:
    """The Outcome of an attempt that raised ``error``, whatever its own code does then."""
    try:
        return _judge(error, spec, frame)
    except BaseException as fault:  # noqa: BLE001 - e.g. its ``delay`` is a property that raises
        reason = f"an exception that cannot be read: {_name_of(fault)}"
        failure = JobError(_name_of(error), reason)
        return spec.retry.after_failure(failure, frame.attempt, frame.max_attempts, random)


def _judge(error: BaseException, spec: TaskSpec, frame: JobFrame) -> Outcome:
    if (release := release_in(error)) is not None:
        delay = timedelta(0) if release.at_once else again_after(frame.releases)
        return Outcome.release(delay, str(release))
    if isinstance(error, Bury):
        return Outcome.bury(JobError("Bury", _text_of(error), cause="bury"))
    if isinstance(error, Retry):
        failure = JobError("Retry", _text_of(error) or "the task asked for another attempt")
        # A subclass may have set none, or another one afterwards.
        asked = getattr(error, "delay", None)
        if isinstance(asked, timedelta) and frame.attempt < frame.max_attempts:
            delay = min(max(asked, timedelta(0)), LONGEST_DELAY)
            return Outcome.retry(failure, delay)
    elif is_soft_timeout(error):
        failure = JobError("SoftTimeout", _text_of(error), _trace_of(error), cause="soft_timeout")
    else:
        failure = JobError(_name_of(error), _text_of(error), _trace_of(error))
    return spec.retry.after_failure(failure, frame.attempt, frame.max_attempts, random)


def _outcome_of(call: Call, result: object) -> Outcome:
    try:
        return _to_outcome(call, result)
    except BaseException as error:  # noqa: BLE001 - a result may have code of its own
        return judge(error, call.task.spec, call.frame)


def _to_outcome(call: Call, result: object) -> Outcome:
    if result is None:
        return _COMPLETE
    if isinstance(result, _Failure):
        return judge(result.error, call.task.spec, call.frame)
    return Outcome.complete(call.task.signature.result.dump(result))


def _name_of(error: BaseException) -> str:
    return str(_own_name(type(error)))  # whatever its metaclass says of its name


def _text_of(error: BaseException) -> str:
    try:
        return str.__str__(str(error))
    except BaseException as fault:  # noqa: BLE001 - an exception whose __str__ raises is a failure
        return f"its text cannot be read: {_name_of(fault)}"


def _trace_of(error: BaseException) -> str:
    """The traceback as text, from the task's own first frame on."""
    trace = error.__traceback__
    own = trace.tb_next if trace is not None else None
    try:
        return "".join(traceback.format_exception(type(error), error, own or trace))
    except BaseException as fault:  # noqa: BLE001 - out of memory, a hostile __str__
        return f"the traceback cannot be shown: {_name_of(fault)}"
