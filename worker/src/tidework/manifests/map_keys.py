"""Checks of the keys of a map: their form, and that none is the operator's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from tidework.manifests.part import CEL_RULES, cel, cel_text

_OWN_PREFIX = "tidework.dev/"
_QUALIFIED = (
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_QUALIFIED_RULE = (
    "write keys as team or example.com/team: at most 63 letters, digits, '-', '_' and '.' behind "
    "the slash"
)


@dataclass(frozen=True, slots=True)
class ForeignKeys:
    """A check of a map's keys: none is the operator's own, by name or by prefix."""

    own: tuple[str, ...]

    @property
    def rule(self) -> str:
        """What is accepted."""
        return (
            f"these are set by the operator, remove yours: {_OWN_PREFIX}..., {', '.join(self.own)}"
        )

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        names = " && ".join(f"!('{key}' in self)" for key in self.own)
        rule = cel(f"{names} && self.all(key, !key.startsWith('{_OWN_PREFIX}'))", self.rule)
        found = handler(core)
        return found | {CEL_RULES: [*found.get(CEL_RULES, []), rule]}

    def _check(self, found: Mapping[str, str]) -> Mapping[str, str]:
        for key in found:
            if key in self.own or key.startswith(_OWN_PREFIX):
                raise ValueError(f"{key!r} is refused: {self.rule}")
        return found


class QualifiedKeys:
    """A check of a map's keys, by which Kubernetes names labels and annotations."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        found = handler(core)
        rule = cel(
            f"self.all(key, key.matches('^({cel_text(_QUALIFIED)})$'))",
            _QUALIFIED_RULE,
        )
        return found | {CEL_RULES: [*found.get(CEL_RULES, []), rule]}

    def _check(self, found: Mapping[str, str]) -> Mapping[str, str]:
        for key in found:
            if re.fullmatch(_QUALIFIED, key, re.ASCII) is None:
                raise ValueError(f"{key!r} is refused: {_QUALIFIED_RULE}")
        return found
