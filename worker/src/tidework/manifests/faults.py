"""What is wrong with a document, said so that its author can mend it.

pydantic finds the faults; here each becomes a path within the document and a reason in the words of
the document (JSON values, camelCase names), with the nearest known name for a misspelt one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tidework.errors import ConfigurationError, ManifestError
from tidework.manifests.part import PART_FAULTS
from tidework.meant import nearest

FieldPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """path: keys and 0-based list places from the top of the document."""

    path: FieldPath
    reason: str

    @property
    def field(self) -> str:
        """The path as people write it: ``spec.env[0].name``."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}"
        return text.removeprefix(".")


class ManifestErrors(ConfigurationError):  # noqa: N818 - several errors in one
    """All that is wrong with the documents that were read; the text has a line per error."""

    def __init__(self, errors: Sequence[ManifestError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))


def faults_of(error: ValidationError, model: type[BaseModel]) -> list[Fault]:
    """Every fault that pydantic found in a document of this model."""
    found = error.errors(include_url=False)
    # pydantic also calls a list too short whose entries it refused.
    around = {details["loc"][:at] for details in found for at in range(len(details["loc"]))}
    return [
        fault
        for details in found
        if details["type"] != "too_short" or details["loc"] not in around
        for fault in _faults_in(details, model)
    ]


def suggestion(found: str, known: Iterable[str]) -> str:
    """What was meant, or else what there is."""
    names = tuple(known)
    meant = nearest(found, names)
    return f"known here: {', '.join(names)}" if meant is None else f"did you mean {meant}?"


def _faults_in(details: ErrorDetails, model: type[BaseModel]) -> list[Fault]:
    path = tuple(part for part in details["loc"] if part != "[key]")  # of a map: its name says it
    context = details.get("ctx", {})
    if details["type"] == PART_FAULTS:
        return [
            Fault((*path, *((field,) if isinstance(field, str) else field)), reason)
            for field, reason in context["faults"]
        ]
    if details["type"] == "extra_forbidden":
        known = _fields_at(model, path[:-1])
        return [Fault(path, f"unknown field; {suggestion(str(path[-1]), known)}")]
    say = _REASONS.get(details["type"])
    if say is None:
        return [Fault(path, f"{details['msg']}, found {_show(details['input'])}")]
    return [Fault(path, say(context, details["input"]))]


def _has_to_be(what: str) -> Callable[[Mapping[str, Any], Any], str]:
    """A reason; braces in ``what`` name values of pydantic's context."""
    return lambda context, found: f"has to be {what.format(**context)}, not {_show(found)}"


_REASONS: dict[str, Callable[[Mapping[str, Any], Any], str]] = {
    "missing": lambda _context, _found: "is required",
    "value_error": lambda context, _found: str(context["error"]),
    "string_type": lambda _context, found: f"has to be text, not {_show(found)}{_quoted(found)}",
    "int_type": _has_to_be("a whole number"),
    "int_from_float": _has_to_be("a whole number"),
    "float_type": _has_to_be("a number"),
    "bool_type": _has_to_be("true or false"),
    "model_type": _has_to_be("a mapping"),
    "model_attributes_type": _has_to_be("a mapping"),
    "dict_type": _has_to_be("a mapping"),
    "tuple_type": _has_to_be("a list"),
    "enum": _has_to_be("{expected}"),
    "literal_error": _has_to_be("{expected}"),
    "greater_than_equal": _has_to_be("{ge} or more"),
    "greater_than": _has_to_be("above {gt}"),
    "less_than_equal": _has_to_be("{le} or less"),
    "too_short": lambda context, _found: f"needs {context['min_length']} or more entries",
    "too_long": lambda context, _found: f"may have {context['max_length']} entries at most",
    "string_too_short": _has_to_be("{min_length} or more characters long"),
    "string_too_long": _has_to_be("{max_length} or fewer characters long"),
    "datetime_type": _has_to_be("a time such as 2030-01-31T06:00:00Z"),
    "datetime_parsing": _has_to_be("a time such as 2030-01-31T06:00:00Z"),
    "datetime_from_date_parsing": _has_to_be("a time such as 2030-01-31T06:00:00Z"),
    "timezone_aware": _has_to_be("a time with its zone, such as 2030-01-31T06:00:00Z"),
}


def _quoted(found: Any) -> str:
    return "" if isinstance(found, dict | list) else "; put it in quotes if it is text"


def _show(found: Any) -> str:
    """A value as JSON, cut to a readable length."""
    text = json.dumps(found, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fields_at(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """Names, as documents write them, of the fields of the part at ``path``."""
    part = model
    for name in path:
        fields = {field.alias: field for field in part.model_fields.values()}
        if name in fields:  # else the key of a map, or a place in a list
            part = _part_in(fields[name].annotation) or part
    return [field.alias or "" for field in part.model_fields.values()]


def _part_in(annotation: Any) -> type[BaseModel] | None:
    """The model within ``tuple[Model, ...]``, ``Model | None`` or ``Model``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        part = _part_in(argument)
        if part is not None:
            return part
    return None
