"""Checks of the keys of a map: their form, and that none is the operator's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tidework.manifests.part import Check, cel, cel_text

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
class ForeignKeys(Check):
    """A check of a map's keys: none is the operator's own, by name or by prefix."""

    own: tuple[str, ...]

    @property
    def rule(self) -> str:
        """What is accepted."""
        return (
            f"these are set by the operator, remove yours: {_OWN_PREFIX}..., {', '.join(self.own)}"
        )

    def cel_rule(self) -> dict[str, str]:
        names = " && ".join(f"!('{key}' in self)" for key in self.own)
        return cel(f"{names} && self.all(key, !key.startsWith('{_OWN_PREFIX}'))", self.rule)

    def check(self, found: Mapping[str, str]) -> Mapping[str, str]:
        for key in found:
            if key in self.own or key.startswith(_OWN_PREFIX):
                raise ValueError(f"{key!r} is refused: {self.rule}")
        return found


class QualifiedKeys(Check):
    """A check of a map's keys, by which Kubernetes names labels and annotations."""

    def cel_rule(self) -> dict[str, str]:
        return cel(f"self.all(key, key.matches('^({cel_text(_QUALIFIED)})$'))", _QUALIFIED_RULE)

    def check(self, found: Mapping[str, str]) -> Mapping[str, str]:
        for key in found:
            if re.fullmatch(_QUALIFIED, key, re.ASCII) is None:
                raise ValueError(f"{key!r} is refused: {_QUALIFIED_RULE}")
        return found
