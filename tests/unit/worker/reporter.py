"""A stand-in for StackReports that makes a report when the test says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Reporter:
    """Counts how often it was asked."""

    def __init__(self) -> None:
        self.latest: Mapping[str, Any] | None = None
        self.on_ready: Callable[[], None] = lambda: None
        self.asked = 0

    def ask(self) -> None:
        """Somebody wants a report."""
        self.asked += 1

    def make(self, **report: Any) -> None:
        """One is ready."""
        self.latest = report
        self.on_ready()
