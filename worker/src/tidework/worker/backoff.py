"""How long a worker waits after failures."""

from __future__ import annotations

from tidework.backoff import Backoff

__all__ = ["Backoff", "start_pause"]


def start_pause(unready: int) -> float:
    """Seconds before another child is started, after ``unready`` in a row that never were ready."""
    return min(30.0, 0.25 * 2.0 ** min(unready, 10))
