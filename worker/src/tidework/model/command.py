"""A command as a task: what is started, with which variables, for which params. Pure.

The system gets the arguments as they are: no shell reads them, nothing in them is replaced. What a
job brings reaches the command on its standard input and in the variables of JOB_VARIABLES.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, TypedDict

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json

from tidework.errors import ConfigurationError, ParamsError
from tidework.model.job import DEFAULT_PRIORITY
from tidework.model.retry import DEFAULT_DELAYS, DEFAULT_MAX_ATTEMPTS
from tidework.model.task import TaskSpec
from tidework.model.values.params import EncodedParams
from tidework.model.values.shape import Shape
from tidework.model.values.signature import Signature
from tidework.model.values.wire_schema import Unions, refuse_unsendable

COMMANDS_SUFFIXES = (".yaml", ".yml", ".json")
"""An app whose name ends so is a commands file (manifests/commands_file.py), no module."""
DEFAULT_MAX_OUTPUT = 1024 * 1024
JOB_VARIABLES = (
    "TIDEWORK_JOB_ID",
    "TIDEWORK_TASK",
    "TIDEWORK_QUEUE",
    "TIDEWORK_NAMESPACE",
    "TIDEWORK_ATTEMPT",
    "TIDEWORK_MAX_ATTEMPTS",
    "TIDEWORK_DEADLINE",
)
"""What a command is told of its job in its environment; a command's own variables are others."""


class CommandOptions(TypedDict, total=False):
    """What ``Tidework.command`` may be told besides name and command.

    cwd:          folder in which it starts; the worker's own unless given
    env:          variables besides those of the worker
    params:       a pydantic model that params have to fit, and that fills in defaults
    max_output:   bytes of its output that are logged per attempt
    queue, max_attempts, delays, timeout, soft_timeout, priority: as of any task; the soft timeout
                  sends SIGTERM
    """

    cwd: str | os.PathLike[str] | None
    env: Mapping[str, str] | None
    params: type[BaseModel] | None
    max_output: int
    queue: str | None
    max_attempts: int
    delays: Sequence[float | timedelta]
    timeout: float | timedelta | None
    soft_timeout: float | timedelta | None
    priority: int


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments.

    argv:       found on PATH unless it has a slash, which counts from ``cwd``
    cwd:        folder in which it starts, '' = the worker's
    env:        variables besides those of the worker
    max_output: bytes of its output that are logged per attempt
    Raises ConfigurationError for what no system could start.
    """

    argv: tuple[str, ...]
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    max_output: int = DEFAULT_MAX_OUTPUT

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ConfigurationError("a command needs a program, such as ['php', 'report.php']")
        for text in (*self.argv, self.cwd, *self.env.values()):
            if not isinstance(text, str):
                raise ConfigurationError(
                    f"command {self}: {text!r} is a {type(text).__name__}; write it as text"
                )
            if "\0" in text:
                raise ConfigurationError(f"command {self}: {text!r} holds a NUL, remove it")
        for name in self.env:
            if not name or "=" in name or "\0" in name:
                raise ConfigurationError(f"command {self}: {name!r} is not the name of a variable")
            if name in JOB_VARIABLES:
                raise ConfigurationError(
                    f"command {self}: {name} is set by the worker; choose another name"
                )
        if self.max_output < 0:
            raise ConfigurationError(
                f"command {self}: max_output is {self.max_output}; it has to be 0 or more bytes"
            )

    @classmethod
    def of(cls, argv: Sequence[str], options: CommandOptions) -> Command:
        """A command as ``Tidework.command`` is told of it."""
        if isinstance(argv, str):
            raise ConfigurationError(
                f"command {argv!r} is one text, and no shell will read it; give a list such as "
                "['php', 'report.php'], or ['sh', '-c', '...'] to have a shell"
            )
        return cls(
            argv=tuple(argv),
            cwd=os.fspath(options.get("cwd") or ""),
            env=dict(options.get("env") or {}),
            max_output=options.get("max_output", DEFAULT_MAX_OUTPUT),
        )

    def __str__(self) -> str:
        return str(list(self.argv))


class CommandSignature(Signature):
    """Params of a command: any JSON object, or what a pydantic model makes of one."""

    def __init__(self, task: str, model: type[BaseModel] | None) -> None:
        super().__init__(task, _takes_anything)
        self._given = model
        if model is None:
            return
        schema = TypeAdapter(model).core_schema
        refuse_unsendable(f"command {task!r}", schema)
        self._own_shape = Shape(schema, model.model_fields)
        self._factories = frozenset(
            name for name, field in model.model_fields.items() if field.default_factory is not None
        )

    def to_params(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> EncodedParams:
        """JSON-ready params. Raises ParamsError."""
        if self._given is None or args:
            return super().to_params(args, kwargs)
        self._refuse_unknown(self._given, kwargs)
        try:
            checked = self._own_shape.check(kwargs)
        except ValidationError as error:
            raise self._refusal(error) from error
        return self._dumped(self._own_shape, checked, self._factories)

    def to_arguments(self, params: Mapping[str, Any], unions: str = Unions.PLAIN) -> dict[str, Any]:
        """Params as the command reads them, the model's defaults filled in. Raises ParamsError."""
        if self._given is None:
            return dict(params)
        checked = self._read(self._own_shape, params, unions)
        try:
            found: dict[str, Any] = from_json(self._own_shape.write(checked, to_be_read=False))
        except Exception as error:
            raise ParamsError(self._task, f"not JSON data: {error}") from error
        return found

    def json_schema(self) -> dict[str, Any]:
        """JSON Schema of the params."""
        return super().json_schema() if self._given is None else self._given.model_json_schema()

    def _refuse_unknown(self, model: type[BaseModel], given: Mapping[str, Any]) -> None:
        """A param that the model would ignore without a word, unless it says that it means to."""
        if "extra" in model.model_config:
            return
        schema = model.model_json_schema()
        known = schema.get("properties", {}).keys() | model.model_fields.keys()
        if unknown := sorted(given.keys() - known):
            has = ", ".join(schema.get("properties", {})) or "none"
            raise ParamsError(
                self._task,
                f"{', '.join(unknown)}: no such param of {model.__name__}; it has: {has}",
            )


class CommandParts(NamedTuple):
    """What a task is made of that is a command."""

    spec: TaskSpec
    function: Callable[..., Any]
    signature: CommandSignature
    command: Command

    @classmethod
    def of(
        cls, name: str, argv: Sequence[str], queue: str, options: CommandOptions
    ) -> CommandParts:
        """queue: unless the options name another one. Raises ConfigurationError."""
        if unknown := options.keys() - CommandOptions.__annotations__.keys():
            known = ", ".join(CommandOptions.__annotations__)
            raise ConfigurationError(
                f"command {name!r} has no option {', '.join(sorted(unknown))}; there are: {known}"
            )
        command = Command.of(argv, options)
        spec = TaskSpec.declared(
            name,
            options.get("queue") or queue,
            max_attempts=options.get("max_attempts", DEFAULT_MAX_ATTEMPTS),
            delays=options.get("delays", DEFAULT_DELAYS),
            timeout=options.get("timeout"),
            soft_timeout=options.get("soft_timeout"),
            priority=options.get("priority", DEFAULT_PRIORITY),
        )
        signature = CommandSignature(name, options.get("params"))
        return cls(spec, _refuse_call(name, command), signature, command)


def _refuse_call(task: str, command: Command) -> Callable[..., Any]:
    """What stands for the code of a command where it is called as a function."""

    def call(**_params: Any) -> Any:
        raise ConfigurationError(
            f"task {task!r} is the command {command}, which only workers run; enqueue it"
        )

    call.__name__ = task
    call.__qualname__ = f"command({task!r}, {command})"
    call.__module__ = "app"
    return call


def _takes_anything(**params: Any) -> None:
    """The shape of a task that takes any params."""
