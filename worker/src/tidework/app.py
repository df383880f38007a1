"""The application: a named set of tasks, and the client that enqueues them.

app = Tidework("shop")

@app.task(queue="emails", max_attempts=5)
def send(to: str, subject: str) -> str: ...

send("a@example.org", "Hello")                    # a plain call
await send.enqueue("a@example.org", "Hello")      # a job
await send.options(delay=60).enqueue(...)         # the same, later

report = app.command("report", ["php", "report.php"])    # any program is a task as well
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

from tidework.broker.broker import Broker
from tidework.client import Client
from tidework.errors import ConfigurationError, EnvelopeError
from tidework.job_handle import JobHandle
from tidework.model.bounds import FAR_FUTURE_S, check_priority, delay_given
from tidework.model.command import Command, CommandOptions, CommandParts
from tidework.model.identity import is_dns_label, is_job_id, new_job_id
from tidework.model.job import DEFAULT_PRIORITY, Enqueued, Job
from tidework.model.retry import DEFAULT_DELAYS, DEFAULT_MAX_ATTEMPTS
from tidework.model.spans import Seconds
from tidework.model.task import TaskSpec
from tidework.model.unique import Unique
from tidework.model.values.params import EncodedParams
from tidework.model.values.signature import Signature, name_of, refuse_what_is_no_function
from tidework.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")


def _checked_id(job_id: str) -> str:
    if not is_job_id(job_id):
        raise ConfigurationError(
            f"job_id {job_id!r}: use 1 to 128 characters of A-Z a-z 0-9 _ . : -"
        )
    return job_id


def _unique_of(given: str | Unique | None) -> Unique | None:
    if not isinstance(given, str):
        return given
    try:
        return Unique(given)
    except EnvelopeError as error:
        raise ConfigurationError(f"unique={given!r}: {error.reason}") from error


class Tidework:
    """A registry of tasks.

    name:     of the application, for logs
    queue:    where tasks go that name no queue of their own
    settings: None = from TIDEWORK_* variables, at the first use
    """

    def __init__(
        self,
        name: str,
        *,
        queue: str = "default",
        settings: Settings | None = None,
        broker: Broker | None = None,
    ) -> None:
        self.name = name
        self.queue = queue
        self.client = Client(settings, broker=broker)
        self._tasks: dict[str, Task[Any, Any]] = {}

    @property
    def tasks(self) -> Mapping[str, Task[Any, Any]]:
        """Registered tasks by name, read-only."""
        return MappingProxyType(self._tasks)

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]]) -> AsyncTask[P, R]: ...

    @overload
    def task(self, function: Callable[P, R]) -> Task[P, R]: ...

    @overload
    def task(
        self,
        *,
        name: str | None = None,
        queue: str | None = None,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        delays: Sequence[Seconds] = DEFAULT_DELAYS,
        timeout: Seconds | None = None,
        soft_timeout: Seconds | None = None,
        priority: int = DEFAULT_PRIORITY,
    ) -> TaskMaker: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        queue: str | None = None,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        delays: Sequence[Seconds] = DEFAULT_DELAYS,
        timeout: Seconds | None = None,
        soft_timeout: Seconds | None = None,
        priority: int = DEFAULT_PRIORITY,
    ) -> Any:
        """Make a function a task; it stays callable. An ``async def`` runs on an event loop.

        name:         on the wire; the function's own name unless given
        max_attempts: runs in all; delays: seconds before the 2nd, 3rd, ... attempt
        timeout:      seconds of one attempt, after which its process is killed
        soft_timeout: seconds after which SoftTimeout is raised in it; below ``timeout``
        priority:     0 (first) to 9
        Raises ConfigurationError for a name taken twice, a bad value, a generator function.
        """

        def register(found: Callable[..., Any]) -> Task[..., Any]:
            own_name = name or name_of(found)
            spec = TaskSpec.declared(
                own_name,
                queue or self.queue,
                max_attempts=max_attempts,
                delays=delays,
                timeout=timeout,
                soft_timeout=soft_timeout,
                priority=priority,
            )
            kind = AsyncTask if inspect.iscoroutinefunction(found) else Task
            return self._register(kind(self, spec, found))

        return register if function is None else register(function)

    def command(
        self, name: str, command: Sequence[str], **options: Unpack[CommandOptions]
    ) -> Task[..., Any]:
        """Make a program with its arguments a task; no shell reads them. Only workers run it.

        It reads its job on standard input; exit code and last line of output say how it ended
        (docs/exec-tasks.md). Raises ConfigurationError for a name taken twice or a bad value.
        """
        return self._register(Task(self, *CommandParts.of(name, command, self.queue, options)))

    def _register(self, task: Task[P, R]) -> Task[P, R]:
        name = task.spec.name
        if name in self._tasks:
            known = self._tasks[name].function
            raise ConfigurationError(
                f"task {name!r} is defined twice: in {known.__module__}.{known.__qualname__} and "
                f"{task.function.__module__}.{task.function.__qualname__}; give one another name"
            )
        if not is_dns_label(task.spec.queue):
            raise ConfigurationError(
                f"task {name!r}: queue {task.spec.queue!r} is not a DNS label "
                "(a-z, 0-9 and '-', at most 63 characters)"
            )
        self._tasks[name] = task
        return task


class Task(Generic[P, R]):
    """A function that can be called here or enqueued to run in a worker; or a command."""

    def __init__(
        self,
        app: Tidework,
        spec: TaskSpec,
        function: Callable[P, R],
        signature: Signature | None = None,
        command: Command | None = None,
    ) -> None:
        refuse_what_is_no_function(spec.name, function)
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise ConfigurationError(
                f"task {spec.name!r} is a generator: a job has one result; return it instead of "
                "yielding (several as a list)"
            )
        self.is_async = inspect.iscoroutinefunction(function)
        self.app = app
        self.spec = spec
        self.function = function
        self.command = command
        self.signature = signature or Signature(spec.name, function)
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self.__wrapped__ = function
        self._plain = Enqueuer(self, EnqueueOptions(priority=spec.priority))

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self.spec.name} of {self.app.name}, queue {self.spec.queue}>"

    def options(
        self,
        *,
        delay: Seconds | None = None,
        at: datetime | None = None,
        priority: int | None = None,
        job_id: str | None = None,
        unique: str | Unique | None = None,
    ) -> Enqueuer[P, R]:
        """The task with options for one enqueue.

        delay: seconds from when the queue takes it, by Redis' clock; at: aware moment (not both);
        priority: 0 to 9;
        job_id: your own id, which makes the enqueue idempotent;
        unique: a key that at most one unfinished job of the queue holds, or a Unique with rules:
        the handle of a job that is skipped for it is that of the holder.
        Raises ConfigurationError for a bad value.
        """
        if delay is not None and at is not None:
            raise ConfigurationError("delay and at are given; use one")
        if at is not None and at.tzinfo is None:
            raise ConfigurationError(
                f"at={at.isoformat()} has no time zone; pass an aware datetime"
            )
        if at is not None and not 0 <= at.timestamp() < FAR_FUTURE_S:
            raise ConfigurationError(f"at={at.isoformat()}: give a moment from 1970 to 9999")
        if priority is not None:
            check_priority("priority", priority)
        if job_id is not None:
            _checked_id(job_id)
        chosen = self.spec.priority if priority is None else priority
        span = None if delay is None else delay_given("delay", delay)
        return Enqueuer(self, EnqueueOptions(span, at, chosen, job_id, _unique_of(unique)))

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Enqueue a call. Raises ParamsError, EnvelopeError, BrokerError."""
        return await self._plain.enqueue(*args, **kwargs)

    def enqueue_sync(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Blocking form of ``enqueue``."""
        return self._plain.enqueue_sync(*args, **kwargs)

    async def enqueue_many(
        self, params: Iterable[Mapping[str, Any]], *, job_ids: Iterable[str] | None = None
    ) -> list[JobHandle[R]]:
        """Enqueue one job per mapping of named parameters; see Enqueuer.enqueue_many."""
        return await self._plain.enqueue_many(params, job_ids=job_ids)

    def enqueue_many_sync(
        self, params: Iterable[Mapping[str, Any]], *, job_ids: Iterable[str] | None = None
    ) -> list[JobHandle[R]]:
        """Blocking form of ``enqueue_many``."""
        return self._plain.enqueue_many_sync(params, job_ids=job_ids)


class AsyncTask(Task[P, R]):
    """The task of an ``async def``. R is what it returns in the end; a call gives a coroutine."""

    def __call__(  # type: ignore[override]
        self, /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]:
        return cast("Coroutine[Any, Any, R]", self.function(*args, **kwargs))


class TaskMaker(Protocol):
    """What ``app.task(...)`` with options gives: it makes a function a task."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


@dataclass(frozen=True, slots=True)
class EnqueueOptions:
    """What one enqueue may say besides the params."""

    delay: timedelta | None = None
    at: datetime | None = None
    priority: int = DEFAULT_PRIORITY
    job_id: str | None = None
    unique: Unique | None = None


class Enqueuer(Generic[P, R]):
    """A task with the options of an enqueue."""

    def __init__(self, task: Task[P, R], options: EnqueueOptions) -> None:
        self._task = task
        self._options = options
        spec, delay, at = task.spec, options.delay, options.at
        self._delay_s = None if delay is None else delay.total_seconds()
        self._at = None if at is None else at.timestamp()
        self._timeout_s = None if spec.timeout is None else spec.timeout.total_seconds()

    def _job(self, params: EncodedParams, job_id: str | None) -> Job:
        spec, options = self._task.spec, self._options
        job = Job(
            job_id or new_job_id(),
            spec.name,
            params,
            options.priority,
            round(time.time(), 3),
            self._at,
            spec.retry.max_attempts,
            self._timeout_s,
            options.unique,
            delay=self._delay_s,
        )
        return job._replace(extra={"unions": params.unions}) if params.unions else job

    def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Job:
        return self._job(self._task.signature.to_params(args, kwargs), self._options.job_id)

    def _jobs(
        self, params: Iterable[Mapping[str, Any]], job_ids: Iterable[str] | None
    ) -> list[Job]:
        if self._options.job_id is not None:
            raise ConfigurationError("job_id names one job; give enqueue_many its job_ids")
        if self._options.unique is not None:
            raise ConfigurationError("a unique key names one job; enqueue them one by one")
        signature = self._task.signature
        checked = [signature.to_params((), found) for found in params]
        ids: list[str | None] = [None] * len(checked)
        if job_ids is not None:
            ids = [_checked_id(found) for found in job_ids]
        if len(ids) != len(checked):
            raise ConfigurationError(
                f"{len(checked)} jobs have {len(ids)} job_ids; give one for each"
            )
        return [self._job(found, job_id) for found, job_id in zip(checked, ids, strict=True)]

    def _handle(self, found: Enqueued) -> JobHandle[R]:
        queue = self._task.spec.queue
        client, result = self._task.app.client, self._task.signature.result
        return JobHandle(client, found.id, queue, inserted=found.inserted, result=result)

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Enqueue a call. Raises ParamsError, EnvelopeError, UniqueConflictError, BrokerError."""
        job = self._call(args, kwargs)
        (found,) = await self._task.app.client.enqueue(self._task.spec.queue, [job])
        return self._handle(found)

    def enqueue_sync(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Blocking form of ``enqueue``."""
        job = self._call(args, kwargs)
        (found,) = self._task.app.client.enqueue_sync(self._task.spec.queue, [job])
        return self._handle(found)

    async def enqueue_many(
        self, params: Iterable[Mapping[str, Any]], *, job_ids: Iterable[str] | None = None
    ) -> list[JobHandle[R]]:
        """Enqueue one job per mapping of named parameters, a batch in one step.

        job_ids: your own ids, one per job: whoever fans out twice enqueues once.
        Raises as ``enqueue``; nothing is enqueued if one mapping does not fit.
        """
        found: list[Enqueued] = []
        for batch in _batches(self._jobs(params, job_ids)):
            found += await self._task.app.client.enqueue(self._task.spec.queue, batch)
        return [self._handle(one) for one in found]

    def enqueue_many_sync(
        self, params: Iterable[Mapping[str, Any]], *, job_ids: Iterable[str] | None = None
    ) -> list[JobHandle[R]]:
        """Blocking form of ``enqueue_many``."""
        found: list[Enqueued] = []
        for batch in _batches(self._jobs(params, job_ids)):
            found += self._task.app.client.enqueue_sync(self._task.spec.queue, batch)
        return [self._handle(one) for one in found]


ENQUEUE_BATCH = 500
"""Jobs per script: more would keep the server busy for longer than its other clients like."""


def _batches(jobs: Sequence[Job]) -> Iterable[Sequence[Job]]:
    for start in range(0, len(jobs), ENQUEUE_BATCH):
        yield jobs[start : start + ENQUEUE_BATCH]
