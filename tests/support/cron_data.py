"""The measured cron data of tests/data/cron, typed. See convert.py there for where it is from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "cron"


@dataclass(frozen=True)
class Case:
    """From ``after`` on, ``schedule`` in ``zone`` fires at ``fires``, by the clock."""

    id: str
    schedule: str
    zone: str
    after: datetime
    fires: tuple[datetime, ...]


@dataclass(frozen=True)
class Refusal:
    """A schedule that is wrong, or that robfig takes by accident, and why."""

    id: str
    schedule: str
    reason: str


def _moment(unix_seconds: float) -> datetime:
    return datetime.fromtimestamp(unix_seconds, UTC)


def _case(id: str, schedule: str, zone: str, after: float, steps: list[int]) -> Case:
    start = _moment(after)
    marks = accumulate(map(float, steps), initial=start.replace(microsecond=0).timestamp())
    return Case(id, schedule, zone, start, tuple(map(_moment, list(marks)[1:])))


def _load(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DATA / name).read_text(encoding="ascii"))
    return content


_CURATED = _load("cases.json")
CASES = [_case(*row) for row in _CURATED["cases"]]
INVALID = [Refusal(*row) for row in _CURATED["invalid"]]
QUIRKS = [Refusal(*row) for row in _CURATED["quirks"]]
RANDOM_ROWS = [
    _case(f"{number}-{kind}", *row)
    for number, (kind, *row) in enumerate(_load("random.json")["rows"])
]

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def go_duration(text: str) -> timedelta:
    """The duration that Go's time.ParseDuration reads, as far as the data needs it."""
    sign = -1 if text.startswith("-") else 1
    total = 0.0
    number = unit = ""
    for character in text.lstrip("-") + "0":
        if character.isdigit() or character == ".":
            if unit:
                total += float(number) * _UNITS[unit]
                number = unit = ""
            number += character
        else:
            unit += character
    return timedelta(seconds=sign * total)
