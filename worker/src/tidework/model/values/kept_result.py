"""What a success leaves behind: JSON, or a mark and the reason why there is none.

A result that cannot be kept is no fault of the work: its job has succeeded. No JSON begins with
the mark.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

_MARK = b"!"
_REASON_LIMIT = 1000


class KeptResult(NamedTuple):
    """JSON data (None also for nothing), the JSON itself, and why there is none, or ''."""

    data: Any = None
    raw: bytes = b""
    refusal: str = ""


def refused_result(reason: str) -> bytes:
    """What is stored instead of a result."""
    text = reason if len(reason) <= _REASON_LIMIT else f"{reason[:_REASON_LIMIT]}..."
    return _MARK + text.encode(errors="backslashreplace")


def is_refused(detail: bytes) -> bool:
    """Is this the reason for having no result?"""
    return detail.startswith(_MARK)


def kept_result(detail: bytes) -> KeptResult:
    """Read what a success stored. Raises ValueError for what no worker writes."""
    if is_refused(detail):
        return KeptResult(refusal=detail[len(_MARK) :].decode())
    return KeptResult(json.loads(detail), detail) if detail else KeptResult()
