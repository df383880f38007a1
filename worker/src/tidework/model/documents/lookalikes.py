"""Fields of a document that mean one of ours, and are called otherwise.

The envelope of the tutorials that Tidework grew out of (``task_type`` in place of ``task``) is read
as ours. Elsewhere a field that only looks like one of ours is kept, without effect, as any unknown
field is: but it is told, since its writer will not have meant that.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from tidework.errors import EnvelopeError
from tidework.model.documents.strict_json import shown

ALIASES = {
    "task_id": "id",
    "task_type": "task",
    "payload": "params",
    "max_attempt": "max_attempts",
}
"""Of the tutorials' envelope. Its ``attempts`` is kept as it is: we count them ourselves."""

_FIELDS = (
    "v", "id", "task", "params", "priority", "created_at", "available_at", "max_attempts",
    "timeout", "unique", "trace",
)  # fmt: skip
_RESERVED = frozenset({"group", "limit_key", "batch_id", "parent_id", "params_ref"})
_MEANT = ALIASES | {
    "attempt": "max_attempts",
    "attempts": "max_attempts",
    "retries": "max_attempts",
    "max_retries": "max_attempts",
    "prio": "priority",
    "args": "params",
    "kwargs": "params",
    "delay": "available_at",
    "eta": "available_at",
    "job_id": "id",
    "task_name": "task",
    "version": "v",
}
_ALIKE = 0.8


def is_foreign(document: dict[str, Any]) -> bool:
    """Is this the tutorials' envelope?"""
    return "task_type" in document and document.get("task") is None


def take_aliases(document: dict[str, Any]) -> None:
    """Call the fields of the tutorials' envelope as ours are called. Raises EnvelopeError."""
    for alias, name in ALIASES.items():
        if alias not in document:
            continue
        value, ours = document.pop(alias), document.get(name)
        if ours is not None and ours != value:
            raise EnvelopeError(
                f"{name!r} says {shown(ours)}, and {alias!r}, which means the same, "
                f"{shown(value)}; write one of them",
                field=name,
            )
        document[name] = value


def meant_by(names: Iterable[str], *, foreign: bool) -> dict[str, str]:
    """Fields that we do not know, and what each of them may have been meant to be.

    foreign: they are the tutorials'
    """
    found = {name: meant for name in names if (meant := _meant(name))}
    if foreign:
        found.pop("attempts", None)
    return found


@lru_cache(maxsize=1024)
def _meant(name: str) -> str:
    if name in _FIELDS or name in _RESERVED or name.startswith("x-") or len(name) > 40:
        return ""
    if name in _MEANT:
        return _MEANT[name]
    plain = {_plain(field): field for field in _FIELDS if field != "v"}
    found = get_close_matches(_plain(name), plain, 1, _ALIKE)
    return plain[found[0]] if found else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
