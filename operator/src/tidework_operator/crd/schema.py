"""From the JSON schema of a pydantic model to a structural schema of OpenAPI v3.

What Kubernetes does not allow is put differently (references, null, exclusive bounds) or left out
(titles, closed objects: the API server prunes or refuses unknown fields by itself). A keyword that
is not known here is an error: it might be a check that would silently get lost.
Source: "Specifying a structural schema" in Kubernetes' page on CustomResourceDefinitions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from tidework.manifests.part import CEL_RULES, LIST_KEYS, LIST_TYPE, OPEN

Schema = dict[str, Any]

_INT32 = 2**31 - 1
_INT_OR_STRING = "x-kubernetes-int-or-string"

# In the order in which they are written.
_KEPT = (
    "description",
    "type",
    "format",
    "default",
    "enum",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "anyOf",
    _INT_OR_STRING,
    LIST_TYPE,
    LIST_KEYS,
    OPEN,
    CEL_RULES,
    "required",
    "properties",
    "additionalProperties",
    "items",
)
_RULE_PARTS = ("rule", "message", "fieldPath")


def structural_schema(model: type[BaseModel], *, defaults: bool = True) -> Schema:
    """The schema of a part of a document.

    defaults: let the API server fill them in, and have the descriptions tell them

    A default that is empty is left out: to whoever reads the document it means the same as none.
    Raises ValueError for what has no structural form.
    """
    schema = model.model_json_schema(by_alias=True)
    return _Translation(schema.pop("$defs", {}), defaults=defaults).of(schema)


class _Translation:
    def __init__(self, definitions: Mapping[str, Schema], *, defaults: bool) -> None:
        self._definitions = definitions
        self._defaults = defaults

    def of(self, schema: Schema) -> Schema:
        found = self._resolved(schema)
        found.pop("title", None)
        if "const" in found:
            found["enum"] = [found.pop("const")]
        if "description" in found:
            found["description"] = " ".join(found["description"].split())
        _number_of_openapi(found)
        if "properties" in found:
            parts = found["properties"].items()
            found["properties"] = {name: self.of(part) for name, part in parts}
        if "items" in found:
            found["items"] = self.of(found["items"])
        if CEL_RULES in found:
            found[CEL_RULES] = [_in_order(rule, _RULE_PARTS) for rule in found[CEL_RULES]]
        self._open_or_map(found)
        self._default(found)
        unknown = found.keys() - set(_KEPT)
        if unknown:
            raise ValueError(f"no structural form for {sorted(unknown)} in {schema}")
        return _in_order(found, _KEPT)

    def _resolved(self, schema: Schema) -> Schema:
        """Without references and without null; what stands beside them wins."""
        found = dict(schema)
        if "$ref" in found:
            target = self._definitions[found.pop("$ref").removeprefix("#/$defs/")]
            return self._resolved({**target, **found})
        if "anyOf" in found and not found.get(_INT_OR_STRING):
            branches = [branch for branch in found.pop("anyOf") if branch != {"type": "null"}]
            if len(branches) != 1:
                raise ValueError(f"no structural form for a choice: {schema}")
            if found.get("default", "") is None:
                del found["default"]
            return self._resolved({**branches[0], **found})
        return found

    def _open_or_map(self, found: Schema) -> None:
        values = found.pop("additionalProperties", None)
        if isinstance(values, dict):
            found["additionalProperties"] = self.of(values)
        elif values is True and not found.get(OPEN):
            raise ValueError(
                f"say x-kubernetes-preserve-unknown-fields where all is let in: {found}"
            )

    def _default(self, found: Schema) -> None:
        if "default" not in found:
            return
        default = found.pop("default")
        if not self._defaults or default in ("", [], {}, None):
            return
        if "properties" not in found and "description" in found:
            # `kubectl explain` shows no defaults of its own.
            found["description"] += f" Default: {_in_words(default)}."
        if "properties" in found:
            filled = filled_in({}, found)
            if _without_empty(default) != filled:
                raise ValueError(
                    f"the default {default} is not what its parts default to: {filled}"
                )
            if not filled:
                return
            default = {}
        found["default"] = default


def _in_words(default: Any) -> str:
    """A default as documents write it, on one line."""
    return default if isinstance(default, str) else json.dumps(default)


def filled_in(value: Any, schema: Schema) -> Any:
    """A value with the defaults of a structural schema, as the API server fills them in."""
    if isinstance(value, dict) and "properties" in schema:
        found = dict(value)
        for name, part in schema["properties"].items():
            if name not in found and "default" in part:
                found[name] = part["default"]
            if name in found:
                found[name] = filled_in(found[name], part)
        return found
    if isinstance(value, list) and "items" in schema:
        return [filled_in(entry, schema["items"]) for entry in value]
    return value


def _in_order(found: Schema, keys: tuple[str, ...]) -> Schema:
    return {key: found[key] for key in keys if key in found}


def _without_empty(default: Any) -> Any:
    if isinstance(default, dict):
        parts = {name: _without_empty(value) for name, value in default.items()}
        return {name: part for name, part in parts.items() if part not in ("", [], {}, None)}
    return default


def _number_of_openapi(found: Schema) -> None:
    """Formats; and exclusive bounds as OpenAPI v3.0 has them, a flag beside the bound."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in found:
            found[bound] = found.pop(exclusive)
            found[exclusive] = True
    if found.get("type") == "integer":
        found["format"] = "int32" if found.get("maximum", _INT32 + 1) <= _INT32 else "int64"
    elif found.get("type") == "number":
        found["format"] = "double"
