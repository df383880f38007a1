"""Conditions of a status, as metav1.Condition has them.

``lastTransitionTime`` moves only when ``status`` does; a condition that nobody mentions any more
is dropped; the order is that of ``wanted``. Equal input gives equal output, so that a status is
written only when something changed.
Source: the API conventions of Kubernetes, "Typical status properties".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidework_operator.cluster import Object

_REASON = re.compile(r"[A-Z][A-Za-z0-9]{0,254}")
_LONGEST_MESSAGE = 32_768  # bound of the API server


@dataclass(frozen=True, slots=True)
class Condition:
    """One statement about an object. ``status`` None means Unknown.

    reason:  a stable CamelCase word for programs
    message: for people; names the remedy where something is wrong
    """

    type: str
    status: bool | None
    reason: str
    message: str = ""

    def __post_init__(self) -> None:
        if not _REASON.fullmatch(self.reason):
            raise ValueError(f"condition {self.type}: reason {self.reason!r} is not CamelCase")


def merge_conditions(
    existing: Sequence[Mapping[str, Any]],
    wanted: Sequence[Condition],
    *,
    generation: int,
    now: datetime,
) -> list[Object]:
    """``wanted`` as the API server stores it, with the transition times that ``existing`` knows.

    generation: metadata.generation of the object that the conditions are about
    """
    known = {found.get("type"): found for found in existing}
    return [_merged(known.get(condition.type), condition, generation, now) for condition in wanted]


def _merged(
    before: Mapping[str, Any] | None, condition: Condition, generation: int, now: datetime
) -> Object:
    status = "Unknown" if condition.status is None else str(condition.status)
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if before is not None and before.get("status") == status:
        since = before.get("lastTransitionTime") or since
    return {
        "type": condition.type,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "reason": condition.reason,
        "message": condition.message[:_LONGEST_MESSAGE],
    }


def find_condition(status: Mapping[str, Any] | None, type_: str) -> Mapping[str, Any] | None:
    """The condition of this type within an object's status; None if there is none."""
    for found in (status or {}).get("conditions", ()):
        if found.get("type") == type_:
            condition: Mapping[str, Any] = found
            return condition
    return None
