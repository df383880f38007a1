"""Spans of time as an application gives them: seconds, or a timedelta."""

from __future__ import annotations

from datetime import timedelta

from tidework.errors import ConfigurationError

Seconds = float | timedelta


def span_given(what: str, value: Seconds) -> timedelta:
    """``value`` as a timedelta. Raises ConfigurationError that names ``what``."""
    if isinstance(value, timedelta):
        return value
    try:
        if isinstance(value, bool):
            raise TypeError("a truth value is not a number of seconds")
        return timedelta(seconds=value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"{what}={value!r}: give seconds, or a timedelta") from error
