"""Unique keys: at most one job of a queue holds a key; whoever comes second is told who does.

The key is held from the enqueue through every retry to the end of the job (``end``), until an
attempt starts (``start``), or for a time, whatever becomes of the job (``ttl``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from tidework.errors import EnvelopeError

MAX_KEY_LENGTH = 200
MAX_TTL_S = 31_536_000.0
E = TypeVar("E", bound=StrEnum)
_FIELDS = frozenset({"key", "until", "ttl", "on_conflict"})


class UniqueUntil(StrEnum):
    """When the key is free again."""

    END = "end"
    START = "start"
    TTL = "ttl"


class OnConflict(StrEnum):
    """What becomes of a job whose key another one holds.

    skip:    it is not enqueued; the caller gets the holder's id
    replace: a waiting holder is cancelled; a running one is told to stop, and the new job waits
             until it has ended
    error:   nothing of the call is enqueued
    """

    SKIP = "skip"
    REPLACE = "replace"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Unique:
    """A unique key and its rules.

    key: 1 to 200 printable characters; ttl: seconds, only and always with ``until=ttl``.
    Raises EnvelopeError for a bad value.
    """

    key: str
    until: UniqueUntil = UniqueUntil.END
    ttl: float | None = None
    on_conflict: OnConflict = OnConflict.SKIP

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= MAX_KEY_LENGTH or not self.key.isprintable():
            raise EnvelopeError(
                f"has to be 1 to {MAX_KEY_LENGTH} printable characters", field="unique.key"
            )
        if self.ttl is not None and (
            isinstance(self.ttl, bool) or not isinstance(self.ttl, int | float)
        ):
            raise EnvelopeError(f"{self.ttl!r} is not a number of seconds", field="unique.ttl")
        if (self.ttl is None) == (self.until is UniqueUntil.TTL):
            raise EnvelopeError(
                "is given with until=ttl and only then, in seconds", field="unique.ttl"
            )
        if self.ttl is not None and not (math.isfinite(self.ttl) and 0 < self.ttl <= MAX_TTL_S):
            raise EnvelopeError(
                f"{self.ttl!r} has to be more than 0 and at most {MAX_TTL_S:.0f}",
                field="unique.ttl",
            )

    def document(self) -> str | dict[str, Any]:
        """What the envelope says: the bare key if everything else is default."""
        found: dict[str, Any] = {"key": self.key}
        if self.until is not UniqueUntil.END:
            found["until"] = self.until.value
        if self.ttl is not None:
            found["ttl"] = self.ttl
        if self.on_conflict is not OnConflict.SKIP:
            found["on_conflict"] = self.on_conflict.value
        return self.key if len(found) == 1 else found


def parse_unique(found: object) -> Unique | None:
    """Read the envelope's ``unique``: absent, a key, or an object. Raises EnvelopeError."""
    if found is None:
        return None
    if isinstance(found, str):
        return Unique(found)
    if not isinstance(found, dict):
        raise EnvelopeError("has to be a key or a JSON object with one", field="unique")
    for name in found:
        if name not in _FIELDS:
            raise EnvelopeError(
                f"is not known; use {', '.join(sorted(_FIELDS))}", field=f"unique.{name}"
            )
    key, ttl = found.get("key"), found.get("ttl")
    if not isinstance(key, str):
        raise EnvelopeError("is needed, as a string", field="unique.key")
    if isinstance(ttl, int) and not isinstance(ttl, bool):
        ttl = float(max(-1, min(ttl, 1 << 62)))
    return Unique(
        key,
        _choice(found, "until", UniqueUntil.END),
        ttl,
        _choice(found, "on_conflict", OnConflict.SKIP),
    )


def _choice(found: Mapping[str, Any], name: str, default: E) -> E:
    value = found.get(name)
    if value is None:
        return default
    try:
        return type(default)(value)
    except ValueError as error:
        known = ", ".join(type(default))
        raise EnvelopeError(f"{value!r} is none of {known}", field=f"unique.{name}") from error
