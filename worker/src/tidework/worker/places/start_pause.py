"""How long a worker waits before it starts another child in the place of one that failed."""

from __future__ import annotations


def start_pause(unready: int) -> float:
    """Seconds before another child is started, after ``unready`` in a row that never were ready."""
    return min(30.0, 0.25 * 2.0 ** min(unready, 10))
