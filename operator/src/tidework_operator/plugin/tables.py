"""Tables and spans of time as kubectl prints them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

_GAP = 3


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they have to be; nothing behind the last one."""
    lines = [head, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join(
        "".join(cell.ljust(width + _GAP) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def span(length: timedelta) -> str:
    """A length of time in two units at most, as kubectl shows ages: 45s, 3m10s, 5h20m, 4d7h."""
    seconds = max(0, int(length.total_seconds()))
    for unit, size, finer, finer_size in (("d", 86_400, "h", 3600), ("h", 3600, "m", 60)):
        if seconds >= size:
            return _two(seconds, (unit, size), (finer, finer_size))
    return _two(seconds, ("m", 60), ("s", 1)) if seconds >= 60 else f"{seconds}s"


def since(text: Any, now: datetime) -> str:
    """How long ago a time of the API server was; '' without one."""
    at = _moment(text)
    return "" if at is None else span(now - at)


def until(text: Any, now: datetime) -> str:
    """In how long a time of the API server comes; '' without one."""
    at = _moment(text)
    if at is None:
        return ""
    return f"in {span(at - now)}" if at > now else "now"


def shown(value: Any) -> str:
    """A value of a status; '' for what is not there."""
    return "" if value is None else str(value)


def _two(seconds: int, coarse: tuple[str, int], fine: tuple[str, int]) -> str:
    rest = seconds % coarse[1] // fine[1]
    return f"{seconds // coarse[1]}{coarse[0]}" + (f"{rest}{fine[0]}" if rest else "")


def _moment(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else None
