"""What was logged, by event: sentences may change (tidework.log_events)."""

from __future__ import annotations

from typing import Any

import pytest


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The events of all lines of Tidework, in order."""
    return [found["event"] for found in map(vars, caplog.records) if "event" in found]


def lines(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    """The lines of an event: fields and ``message``."""
    return [found for found in map(vars, caplog.records) if found.get("event") == event]
