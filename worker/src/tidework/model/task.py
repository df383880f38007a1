"""What a worker knows of a task: its name, its bounds and the shape of its params.

TaskSpec is plain data (it travels from the template process to the supervisor as JSON);
Signature holds the pydantic model made from the function's parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from tidework.errors import ConfigurationError, ParamsError
from tidework.model.identity import is_task_name
from tidework.model.job import DEFAULT_PRIORITY
from tidework.model.params import EncodedParams
from tidework.model.retry import RetryPolicy
from tidework.model.scalars import scalars_of
from tidework.model.spans import Seconds, span_given


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task without its code.

    timeout:      hard timeout of one attempt; None = the queue's hardTimeout
    soft_timeout: when SoftTimeout is raised in it; None = never
    """

    name: str
    queue: str
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: timedelta | None = None
    priority: int = DEFAULT_PRIORITY
    soft_timeout: timedelta | None = None

    def __post_init__(self) -> None:
        if not is_task_name(self.name):
            raise ConfigurationError(
                f"task name {self.name!r}: use 1 to 200 characters of A-Z a-z 0-9 _ . : / -"
            )
        if self.timeout is not None and self.timeout <= timedelta(0):
            raise ConfigurationError(f"task {self.name}: the timeout has to be above 0")
        self._check_soft_timeout()
        if self.priority not in range(10):
            raise ConfigurationError(f"task {self.name}: the priority has to be 0 (first) to 9")

    def _check_soft_timeout(self) -> None:
        if self.soft_timeout is None:
            return
        if self.soft_timeout <= timedelta(0):
            raise ConfigurationError(f"task {self.name}: the soft timeout has to be above 0")
        if self.timeout is not None and self.soft_timeout >= self.timeout:
            soft, hard = self.soft_timeout.total_seconds(), self.timeout.total_seconds()
            raise ConfigurationError(
                f"task {self.name}: the soft timeout of {soft:g} s has to be below the timeout of "
                f"{hard:g} s, which kills"
            )

    @classmethod
    def declared(
        cls,
        name: str,
        queue: str,
        *,
        max_attempts: int,
        delays: Sequence[Seconds],
        timeout: Seconds | None,
        soft_timeout: Seconds | None,
        priority: int,
    ) -> TaskSpec:
        """As an application declares it. Raises ConfigurationError for a bad value."""

        def span(what: str, value: Seconds | None) -> timedelta | None:
            return None if value is None else span_given(f"task {name}: {what}", value)

        waits = tuple(span_given(f"task {name}: delay", delay) for delay in delays)
        return cls(
            name=name,
            queue=queue,
            retry=RetryPolicy(max_attempts=max_attempts, delays=waits),
            timeout=span("timeout", timeout),
            priority=priority,
            soft_timeout=span("soft_timeout", soft_timeout),
        )

    def to_document(self) -> dict[str, Any]:
        """Plain JSON data; durations in seconds."""
        return {
            "name": self.name,
            "queue": self.queue,
            "priority": self.priority,
            "timeout_seconds": _seconds_of(self.timeout),
            "soft_timeout_seconds": _seconds_of(self.soft_timeout),
            "max_attempts": self.retry.max_attempts,
            "delays_seconds": [delay.total_seconds() for delay in self.retry.delays],
            "factor": self.retry.factor,
            "max_delay_seconds": self.retry.max_delay.total_seconds(),
            "jitter": self.retry.jitter,
        }

    @classmethod
    def from_document(cls, found: Mapping[str, Any]) -> TaskSpec:
        """Read what ``to_document`` wrote."""
        return cls(
            name=found["name"],
            queue=found["queue"],
            priority=found["priority"],
            timeout=_span_of(found["timeout_seconds"]),
            soft_timeout=_span_of(found["soft_timeout_seconds"]),
            retry=RetryPolicy(
                max_attempts=found["max_attempts"],
                delays=tuple(timedelta(seconds=s) for s in found["delays_seconds"]),
                factor=found["factor"],
                max_delay=timedelta(seconds=found["max_delay_seconds"]),
                jitter=found["jitter"],
            ),
        )


def _seconds_of(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def _span_of(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


class Signature:
    """Turns call arguments into JSON params and JSON params back into arguments.

    Raises ConfigurationError for a function that cannot be a task (positional-only parameters).
    """

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self._task = task
        self._signature = inspect.signature(function)
        self._open = False
        try:
            hints = get_type_hints(function, include_extras=True)
        except NameError as error:
            raise ConfigurationError(
                f"task {task!r}: an annotation cannot be read: {error}; what it names is needed "
                "while the program runs, so import it outside of TYPE_CHECKING"
            ) from error
        found: dict[str, tuple[Any, Any]] = {}
        positional: list[str] = []
        for name, parameter in self._signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                self._open = True
                continue
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise ConfigurationError(
                    f"task {task!r}: parameter {parameter} has no name on the wire; "
                    "params travel as a JSON object, so make it a plain named parameter"
                )
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                positional.append(name)
            default = ... if parameter.default is parameter.empty else parameter.default
            found[name] = (hints.get(name, Any), default)
        self._positional = tuple(positional)
        self._model = self._make_model(found)
        self._scalars = None if self._open else scalars_of(found)

    def _make_model(self, found: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
        # Prefixed: a parameter may be called 'schema' or 'model_config'.
        fields: dict[str, Any] = {f"p_{name}": field for name, field in found.items()}
        config = ConfigDict(
            extra="allow" if self._open else "forbid",
            alias_generator=_without_prefix,
            arbitrary_types_allowed=False,
        )
        try:
            model: type[BaseModel] = create_model(self._task, __config__=config, **fields)
        except Exception as error:
            raise ConfigurationError(
                f"task {self._task!r}: a parameter's type cannot be checked by pydantic: {error}"
            ) from error
        return model

    def to_params(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """JSON-ready params. Raises ParamsError as a call with these arguments would fail."""
        given = self._by_name(args, kwargs) if args else kwargs
        raw = None if self._scalars is None else self._scalars.encode(given)
        if raw is not None:
            return EncodedParams(raw)
        try:
            checked = self._model.model_validate(given)
        except ValidationError as error:
            self._bind(args, kwargs)
            raise self._refusal(error) from error
        try:
            return checked.model_dump(mode="json", by_alias=True, exclude_unset=True)
        except Exception as error:
            raise ParamsError(self._task, f"not JSON data: {error}") from error

    def _by_name(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        given = dict(zip(self._positional, args, strict=False))
        given.update(kwargs)
        if len(given) < len(args) + len(kwargs):
            self._bind(args, kwargs)
        return given

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ParamsError(self._task, str(error)) from error

    def to_arguments(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function. Raises ParamsError naming each wrong parameter."""
        arguments = None if self._scalars is None else self._scalars.validate(params)
        if arguments is not None:
            return arguments
        try:
            checked = self._model.model_validate(params)
        except ValidationError as error:
            raise self._refusal(error) from error
        given = checked.model_fields_set
        arguments = {
            _without_prefix(name): value
            for name, value in checked.__dict__.items()
            if name in given
        }
        return arguments | (checked.model_extra or {})

    def json_schema(self) -> dict[str, Any]:
        """JSON Schema of the params."""
        return self._model.model_json_schema()

    def _refusal(self, error: ValidationError) -> ParamsError:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'params'}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        return ParamsError(self._task, faults)


def _without_prefix(name: str) -> str:
    return name.removeprefix("p_")
