"""A caller of the API: its name, and what it may do where."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Permission(IntEnum):
    """What a caller may do; a greater one contains the smaller ones."""

    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whose identity was checked.

    via: how that was done: loopback, token, ...
    namespaces: those it may see and act in; None = all
    """

    name: str
    permission: Permission
    namespaces: frozenset[str] | None = None
    via: str = ""

    def may(self, permission: Permission, namespace: str) -> bool:
        """Has it this permission in the namespace?"""
        is_within = self.namespaces is None or namespace in self.namespaces
        return is_within and self.permission >= permission
