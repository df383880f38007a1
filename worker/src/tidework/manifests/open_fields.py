"""Objects of Kubernetes that are open, with the types of the fields that people write by hand.

The whole of their form is Kubernetes' own, and grows with it. But a number in place of a text is
told here, and by the API server, at once and in the words of the document; otherwise the operator
would hear of it when it applies the Deployment, in the words of Go's decoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from tidework.manifests.part import OPEN, refuse

_WORDS: dict[type, tuple[str, str]] = {
    str: ("string", "text"),
    int: ("integer", "a whole number"),
    bool: ("boolean", "true or false"),
}
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class OpenFields:
    """Annotation of a ``dict[str, Any]``: names of fields and their types; others are let in.

    required: of them, those that have to be there
    longest:  characters of a text, where it is bounded more closely than usual
    """

    fields: Mapping[str, type] = field(hash=False)
    required: tuple[str, ...] = ()
    longest: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        properties = {name: self._schema(name, kind) for name, kind in self.fields.items()}
        found: JsonSchemaValue = {"type": "object", OPEN: True, "properties": properties}
        return found | ({"required": list(self.required)} if self.required else {})

    def _schema(self, name: str, kind: type) -> JsonSchemaValue:
        found: JsonSchemaValue = {"type": _WORDS[kind][0], "description": "As in Kubernetes."}
        return found | ({"maxLength": self._most(name)} if kind is str else {})

    def _most(self, name: str) -> int:
        return self.longest.get(name, _LONGEST)

    def _check(self, found: Mapping[str, Any]) -> Mapping[str, Any]:
        faults: list[tuple[str | tuple[str, ...], str]] = [
            (name, "is required") for name in self.required if name not in found
        ]
        for name, kind in self.fields.items():
            value = found.get(name)
            if value is None:
                continue
            if type(value) is not kind:
                faults.append((name, f"has to be {_WORDS[kind][1]}, not {value!r}"))
            elif isinstance(value, str) and len(value) > self._most(name):
                faults.append((name, f"has to be {self._most(name)} or fewer characters long"))
        refuse(faults)
        return found
