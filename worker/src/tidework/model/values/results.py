"""Results of jobs: dumped and read by the return annotation, as params are by theirs.

A result that cannot be kept is no fault of the work: the job has succeeded, without a result. A
function without annotation
(or with Any) gives JSON data: there a tuple is a list, a member of an IntEnum its number.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tidework.errors import ConfigurationError
from tidework.model.documents.strict_json import shown
from tidework.model.outcome import RESULT_LIMIT
from tidework.model.values.kept_result import refused_result
from tidework.model.values.scalars import plain_schema
from tidework.model.values.shape import Shape, UnsendableError
from tidework.model.values.wire_schema import Unions, refuse_unsendable

# Space in front of JSON says how its unions are to be read: whoever does not know skips it.
_SPACE = {Unions.PLAIN: b"", Unions.TYPED: b" ", Unions.TEXT: b"\n"}
_UNIONS = {space: unions for unions, space in _SPACE.items()}


class ResultType:
    """What a task returns.

    hint: its annotation, Any if it has none
    """

    def __init__(self, task: str, hint: Any) -> None:
        self._task = task
        self._hint = Any if hint in (object, None, type(None)) else hint

    @cached_property
    def _shape(self) -> Shape:
        plain = plain_schema(self._hint)
        if plain is not None:
            return Shape(plain, is_safe=True)
        schema = TypeAdapter(self._hint).core_schema
        refuse_unsendable("what it returns", schema)
        return Shape(schema, json_like=True)

    def dump(self, result: object) -> bytes:
        """The bytes to store, empty for None; if the result cannot be kept, the reason."""
        if result is None:
            return b""
        try:
            shape = self._shape
            raw, unions = shape.dump(shape.check(result))
        except (UnsendableError, ConfigurationError) as error:
            return self._refused(result, str(error))
        except ValidationError as error:
            return self._refused(result, f"which is not what it declares: {_faults_of(error)}")
        except BaseException as error:  # noqa: BLE001 - code of the application; its work is done
            return self._refused(result, f"which cannot be dumped: {error!r:.300}")
        if len(raw) > RESULT_LIMIT:
            reason = (
                f"{len(raw)} bytes of JSON, the limit is {RESULT_LIMIT}; store the data elsewhere "
                "and return a reference to it"
            )
            return self._refused(result, reason)
        return b"" if raw == b"null" else _SPACE[unions] + raw

    def _refused(self, result: object, reason: str) -> bytes:
        return refused_result(f"task {self._task} returned {type(result).__name__}: {reason}")

    def read(self, raw: bytes, data: object) -> Any:
        """A result as it is stored, and as JSON data, in its declared type.

        Raises ValueError that says what does not fit.
        """
        if not raw:
            return None
        try:
            return self._shape.read(raw, _UNIONS.get(raw[:1], Unions.PLAIN))
        except ValidationError as error:
            reason = f"{shown(data)} is not what the task declares: {_faults_of(error)}"
            raise ValueError(reason) from error


def _faults_of(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}".removeprefix(": ")
        for fault in error.errors(include_url=False)[:3]
    )


def result_of(hints: Mapping[str, Any]) -> Any:
    """The return annotation, Any without one."""
    return hints.get("return", Any)
