"""The params of a task: from the arguments of a call to JSON, and back.

What arrives is what was sent. Params are dumped and read by the declared types; what would arrive
as something else is refused where it is declared or enqueued. Parameters that were not given do
not travel: they have the default of the worker that runs the job. Within a param everything does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo

from tidework.errors import ConfigurationError, ParamsError
from tidework.model.values.params import EncodedParams
from tidework.model.values.results import ResultType, result_of
from tidework.model.values.scalars import scalars_of
from tidework.model.values.shape import Shape, UnsendableError
from tidework.model.values.wire_schema import WIRE_CONFIG, Unions, refuse_unsendable

_Parameters = dict[str, tuple[Any, Any]]
_ABSENT = None
"""Default of a parameter that the function does without; it never travels."""


class Signature:
    """Turns call arguments into JSON params and JSON params back into arguments.

    result: the type of what the task returns
    Raises ConfigurationError for a function that cannot be a task: positional-only parameters, a
    type that cannot travel.
    """

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self._task = task
        self._signature = signature_of(task, function)
        hints = hints_of(task, function)
        self.result = ResultType(task, result_of(hints))
        self._rest: Any = None
        self._open = False
        found, self._positional = self._parameters(hints)
        self._model = self._make_model(found)
        fields = self._model.model_fields
        # Their default is pydantic's to fill in, here or there: the function's is a FieldInfo.
        self._filled = frozenset(
            f"p_{name}"
            for name, (_, default) in found.items()
            if isinstance(default, FieldInfo)
            or (default is ... and not fields[f"p_{name}"].is_required())
        )
        self._made = frozenset(
            name for name, field in fields.items() if field.default_factory is not None
        )
        self._scalars = None if self._open or self._made else scalars_of(found)
        if self._scalars is None and self._model.__pydantic_complete__:
            self._shape  # noqa: B018 - refuses what cannot travel

    def _parameters(self, hints: Mapping[str, Any]) -> tuple[_Parameters, tuple[str, ...]]:
        """Type and default of each (... = has to be given), and those that have a position."""
        found: _Parameters = {}
        positional: list[str] = []
        for name, parameter in self._signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                found |= self._keywords(hints.get(name, Any))
                continue
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise ConfigurationError(
                    f"task {self._task!r}: parameter {parameter} has no name on the wire; "
                    "params travel as a JSON object, so make it a plain named parameter"
                )
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                positional.append(name)
            default = ... if parameter.default is parameter.empty else parameter.default
            found[name] = (hints.get(name, Any), default)
        return found, tuple(positional)

    def _keywords(self, hint: Any) -> _Parameters:
        """What ``**name: hint`` takes: any name, or those of a TypedDict."""
        if _special_of(hint) != "Unpack":
            self._open, self._rest = True, hint
            return {}
        (named,) = get_args(hint)
        needed = named.__required_keys__
        return {
            name: (_bare(each), ... if name in needed else _ABSENT)
            for name, each in get_type_hints(named, include_extras=True).items()
        }

    def _make_model(self, found: _Parameters) -> type[BaseModel]:
        # Prefixed: a parameter may be called 'schema' or 'model_config'.
        fields: dict[str, Any] = {f"p_{name}": field for name, field in found.items()}
        own = ConfigDict(
            extra="allow" if self._open else "forbid",
            alias_generator=_without_prefix,
            arbitrary_types_allowed=False,
        )
        config = cast("ConfigDict", {**WIRE_CONFIG, **own})
        try:
            model: type[BaseModel] = (
                create_model(self._task, __base__=_taking_more(config, self._rest), **fields)
                if self._open
                else create_model(self._task, __config__=config, **fields)
            )
        except Exception as error:
            raise ConfigurationError(
                f"task {self._task!r}: a parameter's type cannot be checked by pydantic: {error}"
            ) from error
        return model

    @cached_property
    def _shape(self) -> Shape:
        schema = TypeAdapter(self._model).core_schema
        refuse_unsendable(f"task {self._task!r}", schema)
        return Shape(schema, self._model.model_fields)

    def to_params(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> EncodedParams:
        """JSON-ready params. Raises ParamsError as a call with these arguments would fail, and for
        what would arrive as something else."""
        given = self._by_name(args, kwargs) if args else kwargs
        raw = None if self._scalars is None else self._scalars.encode(given)
        if raw is not None:
            return EncodedParams(raw)
        try:
            checked = self._shape.check(given)
        except ValidationError as error:
            self._bind(args, kwargs)
            raise self._refusal(error) from error
        return self._dumped(self._shape, checked, self._made)

    def _dumped(self, shape: Shape, checked: BaseModel, made: frozenset[str]) -> EncodedParams:
        """The parts of a checked model: what was given, and what a factory made for this call."""
        given = checked.model_fields_set
        names = shape.fields
        left_out = None if len(given) == len(names) else set(names - given - made)
        try:
            raw, unions = shape.dump(checked, left_out)
        except UnsendableError as error:
            path = tuple(
                _without_prefix(step) if place == 0 and isinstance(step, str) else step
                for place, step in enumerate(error.path)
            )
            raise ParamsError(self._task, str(UnsendableError(path, error.reason))) from error
        return EncodedParams(raw, unions)

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

    def to_arguments(self, params: Mapping[str, Any], unions: str = Unions.PLAIN) -> dict[str, Any]:
        """Keyword arguments for the function. Raises ParamsError naming each wrong parameter.

        unions: as the envelope says, see Unions
        """
        arguments = None if self._scalars is None else self._scalars.validate(params)
        if arguments is not None:
            return arguments
        checked = self._read(self._shape, params, unions)
        given = checked.model_fields_set | self._filled
        arguments = {
            _without_prefix(name): value
            for name, value in checked.__dict__.items()
            if name in given
        }
        return arguments | (checked.model_extra or {})

    def _read(self, shape: Shape, params: Mapping[str, Any], unions: str) -> BaseModel:
        try:
            checked: BaseModel = shape.read_data(params, unions)
        except ValidationError as error:
            raise self._refusal(error) from error
        return checked

    def json_schema(self) -> dict[str, Any]:
        """JSON Schema of the params."""
        return self._model.model_json_schema()

    def _refusal(self, error: ValidationError) -> ParamsError:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'params'}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        return ParamsError(self._task, faults)


def name_of(function: Any) -> str:
    """The name that a function was defined with. Raises ConfigurationError for what has none."""
    found = getattr(function, "__name__", None)
    if isinstance(found, str) and not isinstance(function, type):
        return found
    raise _not_a_function(repr(function))


def refuse_what_is_no_function(task: str, function: Any) -> None:
    """Raises ConfigurationError for a partial, a callable object, a class, a method of a class."""
    if isinstance(function, type) or not (callable(function) and hasattr(function, "__name__")):
        raise _not_a_function(f"task {task!r}")
    within = function.__qualname__.rpartition(".")[0] if hasattr(function, "__qualname__") else ""
    if within and not within.endswith("<locals>") and not inspect.ismethod(function):
        first = next(iter(signature_of(task, function).parameters), "")
        if first in ("self", "cls"):
            raise ConfigurationError(
                f"task {task!r}: {function.__qualname__} is a method, and a worker has no object "
                "to call it on; make it a function of a module, or a staticmethod"
            )


def _not_a_function(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what}: a task has to be a function; write a 'def' that calls what you have"
    )


def signature_of(task: str, function: Callable[..., Any]) -> inspect.Signature:
    """Raises ConfigurationError for what has none."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"task {task!r}: {function!r} has no signature that can be read: {error}; "
            "make the task of a function that calls it"
        ) from error


def hints_of(task: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations as types. Raises ConfigurationError for one that cannot be read."""
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ConfigurationError(
            f"task {task!r}: an annotation cannot be read: {error}; its names are needed "
            "while the program runs, so import them outside of TYPE_CHECKING"
        ) from error


def _taking_more(config: ConfigDict, hint: Any) -> type[BaseModel]:
    """A model that keeps what it has no field for, each of this type."""
    extra = dict.__class_getitem__((str, hint))
    parts = {"__annotations__": {"__pydantic_extra__": extra}, "model_config": config}
    return type("Params", (BaseModel,), {"__module__": __name__, **parts})


def _special_of(hint: Any) -> str:
    """By name, since typing and typing_extensions may each have their own."""
    return getattr(get_origin(hint), "_name", None) or ""


def _bare(hint: Any) -> Any:
    """Without what says whether it has to be given."""
    while _special_of(hint) in ("Required", "NotRequired", "ReadOnly"):
        (hint,) = get_args(hint)
    return hint


def _without_prefix(name: str) -> str:
    return name.removeprefix("p_")
