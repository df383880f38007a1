"""The shape of a value that travels: how it is dumped, how it is read, and whether both agree.

Whatever is dumped is read back and compared before it leaves, with the code that will read it. So
a value arrives as it was sent, or it does not leave; which of pydantic's many ways it was dumped in
does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, time
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import BaseModel, SecretBytes, SecretStr, ValidationError
from pydantic_core import CoreSchema, SchemaValidator, from_json, to_json

from tidework.model.documents.strict_json import MAX_DEPTH, refuse_depth, shown
from tidework.model.values.params import EncodedParams
from tidework.model.values.same import Comparison, Difference
from tidework.model.values.wire_schema import (
    Unions,
    has_sequences,
    has_text_unions,
    is_data,
    reader_of,
    wire_schema,
    writer_of,
)

_FIRST_LOOKS = (Unions.PLAIN,)
_ALL_LOOKS = (Unions.PLAIN, Unions.TYPED, Unions.TEXT)


class Dumped(NamedTuple):
    """A value as JSON, and how its unions are to be read."""

    raw: bytes
    unions: Unions


class UnsendableError(Exception):
    """The value cannot make the way and back. ``path`` leads to the fault, outermost first."""

    def __init__(self, path: tuple[str | int, ...], reason: str) -> None:
        self.path = path
        self.reason = reason
        where = ".".join(map(str, path))
        super().__init__(f"{where}: {reason}" if where else reason)


class Shape:
    """Dumps and reads values of one type.

    fields:    names of its fields, if it is a model
    json_like: what comes back may be plain JSON data where the type says nothing (a list for a
    tuple in an Any); is_safe: its values need not be read back
    """

    def __init__(
        self,
        schema: CoreSchema,
        fields: Iterable[str] = (),
        *,
        json_like: bool = False,
        is_safe: bool = False,
    ) -> None:
        self._schema = schema
        self.fields = frozenset(fields)
        plain = wire_schema(schema)
        self._reader = reader_of(plain)
        self._writer = writer_of(plain)
        self._looks = _ALL_LOOKS if has_text_unions(schema) else _FIRST_LOOKS
        self._is_safe = is_safe
        self._is_data = json_like and is_data(schema)
        self._compare = Comparison(sequences=has_sequences(schema), json_like=json_like)

    def check(self, value: object) -> Any:
        """A value of Python, as its type takes it. Raises ValidationError."""
        return self._reader.validate_python(value)

    def read(self, raw: bytes, unions: str = Unions.PLAIN) -> Any:
        """Read JSON. Raises ValidationError; a word for unions that is not known counts as none."""
        reader = self._other_readers.get(unions, self._reader) if unions else self._reader
        return reader.validate_json(raw)

    def read_data(self, data: object, unions: str = Unions.PLAIN) -> Any:
        """Read JSON data that was parsed. Raises ValidationError."""
        raw = data.raw if type(data) is EncodedParams else to_json(data, inf_nan_mode="constants")
        return self.read(raw, unions)

    def write(
        self, value: object, exclude: set[str] | None = None, *, to_be_read: bool = True
    ) -> bytes:
        """Dump without looking back.

        to_be_read: as this shape reads it, without computed fields, Json[...] as JSON within JSON
        """
        return self._writer.to_json(
            value, exclude=exclude, by_alias=True, round_trip=to_be_read, warnings=False
        )

    def dump(self, value: object, exclude: set[str] | None = None) -> Dumped:
        """Dump a checked value. Raises UnsendableError.

        exclude: names of the outermost fields that do not travel
        """
        try:
            raw = self.write(value, exclude)
        except Exception as error:
            path = self._place_of_what_cannot_be_written(value)
            raise UnsendableError(path, f"not JSON data: {error}; convert it first") from error
        refuse_what_json_has_not(raw)
        # Of plain data equality says enough, and is asked in C.
        if self._is_safe or (self._is_data and from_json(raw) == value):
            return Dumped(raw, Unions.PLAIN)
        first: UnsendableError | None = None
        for unions in self._looks:
            fault = self._fault_in(raw, unions, value, exclude)
            if fault is None:
                return Dumped(raw, unions)
            first = first or fault
        assert first is not None
        raise first

    def _place_of_what_cannot_be_written(self, value: object) -> tuple[str, ...]:
        """The first field that cannot, if it is a model."""
        for name in sorted(self.fields):
            try:
                self._writer.to_json(value, include={name}, round_trip=True, warnings=False)
            except Exception:  # noqa: BLE001 - as the whole has failed before
                return (name,)
        return ()

    @cached_property
    def _other_readers(self) -> dict[str, SchemaValidator]:
        return {
            unions.value: reader_of(wire_schema(self._schema, unions))
            for unions in (Unions.TYPED, Unions.TEXT)
        }

    def _fault_in(
        self, raw: bytes, unions: Unions, value: Any, exclude: set[str] | None
    ) -> UnsendableError | None:
        try:
            found = self.read(raw, unions)
        except ValidationError as error:
            return _unreadable(error, value)
        except Exception as error:  # noqa: BLE001 - a validator of the application
            return UnsendableError((), f"cannot be read back: {error!r}")
        try:
            different = self._difference(value, found, exclude or set())
        except RecursionError:
            return UnsendableError((), "holds itself; send its parts")
        return None if different is None else UnsendableError(different.path, told(different))

    def _difference(self, value: Any, found: Any, exclude: set[str]) -> Difference | None:
        if not exclude:
            return self._compare.find(value, found)
        sent = {name: each for name, each in vars(value).items() if name not in exclude}
        there = {name: each for name, each in vars(found).items() if name not in exclude}
        return self._compare.find(sent, there) or self._compare.find(
            value.model_extra or {}, found.model_extra or {}
        )


def _unreadable(error: ValidationError, value: object) -> UnsendableError:
    fault = error.errors(include_url=False)[0]
    place = fault["loc"]
    sent = _at(value, place)
    if isinstance(sent, (SecretStr, SecretBytes)):
        return UnsendableError(place, _remedy(sent, None))
    what = f"its JSON {shown(fault['input'])} " if place else ""
    return UnsendableError(place, f"{what}cannot be read back: {fault['msg']}")


def _at(value: object, path: tuple[str | int, ...]) -> object:
    """What lies there; None if the path says more than where (such as a type of a union)."""
    for step in path:
        if isinstance(value, BaseModel):
            fields = type(value).model_fields
            names = [name for name, each in fields.items() if step in (name, each.alias)]
            value = (
                getattr(value, names[0], None)
                if names
                else (value.model_extra or {}).get(str(step))
            )
        elif isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, (list, tuple)) and isinstance(step, int) and step < len(value):
            value = value[step]
    return value


def told(different: Difference) -> str:
    """What would become of a value, and how to mend it."""
    sent, found = different.sent, different.found
    if isinstance(sent, Mapping) and isinstance(found, Mapping) and len(sent) != len(found):
        before, after = _short(repr(list(sent))), _short(repr(list(found)))
        return f"its keys {before} would arrive as {after}: two are the same text; rename one"
    shown_found = shown(found)
    if shown_found == shown(sent):
        shown_found = f"{type(found).__name__} {shown_found}"
    return f"{shown(sent)} would arrive as {shown_found}; {_remedy(sent, found)}"


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def _remedy(sent: object, found: object) -> str:
    if isinstance(sent, (SecretStr, SecretBytes)):
        return (
            "a secret is not stored; fetch it in the task, or declare the type as "
            "tidework.StoredSecret if it may lie in Redis as plain text"
        )
    if isinstance(sent, (datetime, time)) and type(sent) is type(found):
        return "its offset from UTC has seconds, or it has a fold; convert it with astimezone(UTC)"
    if type(sent) is not type(found) and isinstance(sent, type(found)):
        return f"declare its type as {type(sent).__name__}, or as a union with it"
    if type(sent) is type(found):
        return "its dump and its validation do not fit together: look at its type's serializers"
    return f"declare its type as {type(sent).__name__}, or convert it first"


def refuse_what_json_has_not(raw: bytes) -> None:
    """Not-a-number, infinity, what is nested too deep. Raises UnsendableError."""
    if b"NaN" in raw or b"Infinity" in raw:
        try:
            from_json(raw, allow_inf_nan=False)
        except ValueError as error:
            data = from_json(raw)
            place = Comparison().find(data, _without_nan(data))
            path, number = ((), "nan") if place is None else (place.path, repr(place.sent))
            reason = f"{number} is not JSON data: JSON has no such number; send None or a text"
            raise UnsendableError(path, reason) from error
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        try:
            refuse_depth([from_json(raw)], raw)  # a level for the document
        except ValueError as error:
            raise UnsendableError((), str(error)) from error


def _without_nan(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_nan(each) for key, each in data.items()}
    if isinstance(data, list):
        return [_without_nan(each) for each in data]
    if isinstance(data, float) and data - data != 0:
        return None
    return data
