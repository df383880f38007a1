"""Requests and answers as a failing example tells them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any


def tell(value: Any) -> str:
    """A value as one would write it: without defaults, times in short."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, datetime):
        return f"{value:%H:%M:%S.%f}"[:-3]
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(tell(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{tell(k)}: {tell(v)}" for k, v in value.items()) + "}"
    if is_dataclass(value) and not isinstance(value, type):
        given = [
            f"{each.name}={tell(getattr(value, each.name))}"
            for each in fields(value)
            if getattr(value, each.name) not in (each.default, None, {}, ())
        ]
        return f"{type(value).__name__}({', '.join(given)})"
    return repr(value)
