"""Params that are all plain scalars, and lists and dicts of them, as those of most tasks.

They are checked and written in two calls. They arrive as they were sent by construction, so that
nothing is read back.

What a model of pydantic would say of them holds here as well, and whatever is not as simple as
it looks (a wrong value, NaN, an integer of thousands of digits) is left to the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreConfig, CoreSchema, SchemaSerializer, SchemaValidator, core_schema

MOST_BYTES = 4000
"""Integers have at most 4300 digits."""

_SCHEMAS: dict[Any, CoreSchema] = {
    str: core_schema.str_schema(),
    int: core_schema.int_schema(),
    float: core_schema.float_schema(),
    bool: core_schema.bool_schema(),
}


class Scalars:
    """Named parameters with their types and whether they have to be given."""

    def __init__(self, schemas: Mapping[str, tuple[CoreSchema, bool]]) -> None:
        fields = {
            name: core_schema.typed_dict_field(schema, required=required)
            for name, (schema, required) in schemas.items()
        }
        whole = core_schema.typed_dict_schema(fields, extra_behavior="forbid")
        self._validate = SchemaValidator(whole).validate_python
        # As JSON has no NaN, the usual setting writes null.
        config = CoreConfig(ser_json_inf_nan="constants")
        self._to_json = SchemaSerializer(whole, config).to_json

    def validate(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """What was given, in the parameters' types; None = ask the model."""
        try:
            found: dict[str, Any] = self._validate(given)
        except ValidationError:
            return None
        return found

    def encode(self, given: Mapping[str, Any]) -> bytes | None:
        """What was given as a compact JSON object; None = ask the model."""
        try:
            raw = self._to_json(self._validate(given))
        except ValueError:
            return None
        if len(raw) > MOST_BYTES or b"NaN" in raw or b"Infinity" in raw:
            return None
        return raw


def scalars_of(parameters: Mapping[str, tuple[Any, Any]]) -> Scalars | None:
    """None if one is of another type.

    parameters: type and default of each, ... = has to be given
    """
    schemas: dict[str, tuple[CoreSchema, bool]] = {}
    for name, (hint, default) in parameters.items():
        schema = plain_schema(hint)
        if schema is None or isinstance(default, FieldInfo):
            return None
        schemas[name] = (schema, default is ...)
    return Scalars(schemas)


def plain_schema(hint: Any) -> CoreSchema | None:
    """Of a type whose values arrive as they were sent by construction; None of any other."""
    if get_origin(hint) in (Union, UnionType):
        first, second, *more = get_args(hint)
        if more or NoneType not in (first, second):
            return None
        inner = plain_schema(first if second is NoneType else second)
        return None if inner is None else core_schema.nullable_schema(inner)
    if get_origin(hint) is list:
        items = plain_schema(get_args(hint)[0])
        return None if items is None else core_schema.list_schema(items)
    if get_origin(hint) is dict and get_args(hint)[0] is str:
        values = plain_schema(get_args(hint)[1])
        if values is None:
            return None
        return core_schema.dict_schema(core_schema.str_schema(), values)
    return next((schema for plain, schema in _SCHEMAS.items() if hint is plain), None)
