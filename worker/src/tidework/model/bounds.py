"""The bounds of a job's numbers, checked where an application says them.

They are those of the envelope: what passes here can be read by every worker.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from tidework.errors import ConfigurationError
from tidework.model.outcome import LONGEST_DELAY
from tidework.model.spans import Seconds, span_given

MOST_ATTEMPTS = 1000
SHORTEST_TIMEOUT_S = 0.001
LONGEST_TIMEOUT_S = 31_536_000
"""A year."""
FAR_FUTURE_S = 253_402_300_800.0
"""Unix seconds: the year 10000."""


def check_attempts(what: str, value: Any) -> None:
    """Raises ConfigurationError that names ``what``, as all of these do."""
    if type(value) is not int or not 1 <= value <= MOST_ATTEMPTS:
        raise ConfigurationError(
            f"{what}={value!r}: give a whole number of attempts from 1 to {MOST_ATTEMPTS}"
        )


def check_priority(what: str, value: Any) -> None:
    """0 to 9."""
    if type(value) is not int or not 0 <= value <= 9:
        raise ConfigurationError(f"{what} {value!r}: use 0 (first) to 9 (last)")


def check_timeout(what: str, value: timedelta) -> None:
    """Refuse a timeout of an attempt that is out of bounds. Raises ConfigurationError."""
    if not SHORTEST_TIMEOUT_S <= value.total_seconds() <= LONGEST_TIMEOUT_S:
        raise ConfigurationError(
            f"{what} of {value.total_seconds():g} s has to lie between {SHORTEST_TIMEOUT_S:g} s "
            f"and {LONGEST_TIMEOUT_S} s (a year)"
        )


def delay_given(what: str, value: Seconds) -> timedelta:
    """Until something runs."""
    span = span_given(what, value)
    if not timedelta(0) <= span <= LONGEST_DELAY:
        raise ConfigurationError(
            f"{what}={value!r}: give 0 to {LONGEST_DELAY.total_seconds():.0f} seconds (ten years)"
        )
    return span


def wait_given(what: str, value: Any) -> float | None:
    """How long to wait for something, in seconds; None = for ever."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise ConfigurationError(f"{what}={value!r}: give seconds, or None to wait for ever")
    return None if value == math.inf else float(value)
