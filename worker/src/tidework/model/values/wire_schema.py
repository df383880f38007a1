"""Core schemas of pydantic, made into the form that travels: what is dumped can be read.

As pydantic has them, a model may dump a field under a name that it does not read, drop a field, or
write bytes as text where they happen to be text. Here a field goes by the name under which it is
read, bytes are base64, and an iterator is a list. What no form could carry is refused.

A text in JSON may be a text or, say, a moment. For the declared type ``datetime | str`` nobody can
tell which from the document alone: see Unions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, cast

from pydantic_core import CoreConfig, CoreSchema, SchemaSerializer, SchemaValidator

from tidework.errors import ConfigurationError

WIRE_CONFIG: dict[str, Any] = {
    "ser_json_bytes": "base64",
    "val_json_bytes": "base64",
    # As null they would pass for None.
    "ser_json_inf_nan": "constants",
}
_FIELDS = frozenset({"model-field", "dataclass-field", "typed-dict-field"})
_HOLDS_FIELDS = frozenset({"model", "dataclass", "typed-dict"})
_KEYS_WITHOUT_FORM = frozenset(
    {"none", "tuple", "list", "set", "frozenset", "dict", "model", "dataclass", "typed-dict"}
)
_LOOSE_ON_TEXT = frozenset({"int", "float", "bool"})
_DATA = frozenset({"any", "dict", "list", "str", "int", "float", "bool", "none", "nullable"})
# What is a value, or code, and no schema.
_OPAQUE = frozenset({"default", "default_factory", "metadata", "function", "cls", "config"})
_Node = dict[str, Any]


class Unions(StrEnum):
    """How a reader takes a text that more than one type of a union could mean.

    PLAIN: as pydantic does; what documents of others mean
    TYPED: the other types come before ``str``
    TEXT:  ``str`` comes before the others
    """

    PLAIN = ""
    TYPED = "typed"
    TEXT = "text"


def wire_schema(schema: CoreSchema, unions: Unions = Unions.PLAIN) -> CoreSchema:
    """A copy in the form that travels."""
    return cast("CoreSchema", _mended(schema, unions, by_name=False))


def reader_of(schema: CoreSchema) -> SchemaValidator:
    """A validator of just this schema: the ready-made ones of its models are of another form."""
    return cast("SchemaValidator", _of_schema_alone(SchemaValidator, schema))


def writer_of(schema: CoreSchema) -> SchemaSerializer:
    """The serializer that belongs to it."""
    return cast("SchemaSerializer", _of_schema_alone(SchemaSerializer, schema))


def _of_schema_alone(make: Callable[..., Any], schema: CoreSchema) -> Any:
    config = cast("CoreConfig", WIRE_CONFIG)
    try:
        return make(schema, config, _use_prebuilt=False)
    except TypeError:  # a version of pydantic that uses none
        return make(schema, config)


def _mended(node: Any, unions: Unions, *, by_name: bool) -> Any:
    if isinstance(node, (list, tuple)):
        return type(node)(_mended(each, unions, by_name=by_name) for each in node)
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if not isinstance(kind, str):
        return {name: _mended(each, unions, by_name=by_name) for name, each in node.items()}
    if kind in _HOLDS_FIELDS:
        by_name = (node.get("config") or {}).get("validate_by_alias") is False
    found = {
        name: each if name in _OPAQUE else _mended(each, unions, by_name=by_name)
        for name, each in node.items()
    }
    if kind in _HOLDS_FIELDS:
        found["config"] = {**WIRE_CONFIG, **(node.get("config") or {})}
    elif kind in _FIELDS:
        _name_as_read(found, by_name=by_name)
    elif kind == "generator":
        found["type"] = "list"
    elif kind == "union" and unions is not Unions.PLAIN:
        found = _ordered(found, unions)
    return found


def _name_as_read(field: _Node, *, by_name: bool) -> None:
    field.pop("serialization_alias", None)
    alias = None if by_name else read_alias(field)
    if alias is not None:
        field["serialization_alias"] = alias


def read_alias(field: Mapping[str, Any]) -> str | None:
    """The one name under which a field is read besides its own; None if it has none, or a path."""
    alias = field.get("validation_alias")
    if alias is None or isinstance(alias, str):
        return alias
    paths = [alias] if alias and not isinstance(alias[0], list) else alias
    for path in paths:
        if len(path) == 1 and isinstance(path[0], str):
            return path[0]
    return None


def _ordered(union: _Node, unions: Unions) -> _Node:
    texts, others = [], []
    for choice in union["choices"]:
        schema, *_label = choice if isinstance(choice, tuple) else (choice,)
        if schema.get("type") == "str":
            texts.append(choice)
        elif schema.get("type") in _LOOSE_ON_TEXT:
            others.append({**schema, "strict": True})
        else:
            others.append(choice)
    if not texts:
        return union
    choices = [*others, *texts] if unions is Unions.TYPED else [*texts, *others]
    return {**union, "mode": "left_to_right", "choices": choices}


def nodes_of(node: Any) -> Iterator[_Node]:
    """Every schema within a schema, itself included; no other code looks for them."""
    if isinstance(node, (list, tuple)):
        for each in node:
            yield from nodes_of(each)
    elif isinstance(node, dict):
        is_schema = isinstance(node.get("type"), str)
        if is_schema:
            yield node
        for name, each in node.items():
            if not (is_schema and name in _OPAQUE):
                yield from nodes_of(each)


def has_text_unions(schema: CoreSchema) -> bool:
    """Is there a union in it whose types a text may leave open?"""
    return any(
        node["type"] == "union" and any(each.get("type") == "str" for each in nodes_of(node))
        for node in nodes_of(schema)
    )


def is_data(schema: CoreSchema) -> bool:
    """Does it take JSON data as it is, and make nothing else of it?"""
    return all(node["type"] in _DATA for node in nodes_of(schema))


def has_sequences(schema: CoreSchema) -> bool:
    """Is something declared as a Sequence, which is a list when it was read?"""
    return any(
        node["type"] == "is-instance" and getattr(node["cls"], "__name__", "") == "Sequence"
        for node in nodes_of(schema)
    )


def refuse_unsendable(what: str, schema: CoreSchema) -> None:
    """Raises ConfigurationError for a type that cannot travel, whatever its values are.

    what: names it in the error, such as "task 'send': param 'order'"
    """
    for node in nodes_of(schema):
        kind = node["type"]
        if kind == "dict" and (key := _key_kind(node)) in _KEYS_WITHOUT_FORM:
            raise ConfigurationError(
                f"{what}: a key of type {key} in a dict has no form in JSON that can be read back; "
                "use a list of pairs, or keys that are texts or numbers"
            )
        if kind in _HOLDS_FIELDS:
            _refuse_fields(what, node)


def _key_kind(node: _Node) -> str:
    key = node.get("keys_schema") or {"type": "any"}
    while "schema" in key and isinstance(key["schema"], dict) and key["type"] != "model":
        key = key["schema"]
    return str(key["type"])


def _refuse_fields(what: str, node: _Node) -> None:
    owner = getattr(node.get("cls"), "__name__", "") or node.get("cls_name") or "its type"
    by_name = any(
        (node.get("config") or {}).get(each) for each in ("validate_by_name", "populate_by_name")
    )
    inner = node.get("schema") or node
    while "fields" not in inner and isinstance(inner.get("schema"), dict):
        inner = inner["schema"]
    fields = inner.get("fields") or {}
    named = (
        fields.items()
        if isinstance(fields, dict)
        else [(each.get("name", "?"), each) for each in fields]
    )
    for own_name, field in named:
        name = read_alias(field) or own_name
        if field.get("serialization_exclude"):
            raise ConfigurationError(
                f"{what}: {owner}.{name} is declared with exclude=True, so it would be lost "
                "on the way; remove exclude, or do not send the field"
            )
        if "validation_alias" in field and read_alias(field) is None and not by_name:
            raise ConfigurationError(
                f"{what}: {owner}.{name} is read from a path alone, to which it cannot be "
                "written; give it a name too: AliasChoices('name', AliasPath(...))"
            )
