"""Tables of plain text, and what stands in their cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines in which the cells of a column begin at the same place, with two spaces between."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def in_short(progress: Any) -> str:
    """What a job says of its progress, from whatever version, in one cell; '-' if nothing."""
    if not isinstance(progress, Mapping):
        return "-"
    done, total, note = (progress.get(field) for field in ("done", "total", "note"))
    share = "" if total is None else f" of {total}"
    return f"{done}{share} {note or ''}".strip()


def span_text(seconds: float | None) -> str:
    """A span in its unit, with two digits or three; '-' if there is none."""
    if seconds is None:
        return "-"
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1), ("ms", 0.001)):
        if seconds >= length:
            value = seconds / length
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds * 1000:.2f} ms"
