"""What a running job says of itself: how far it is, and where its checkpoints stand.

Both travel as JSON texts, from the job's process past its supervisor into the queue, and nobody on
the way looks into them. They are small, whatever a job does: what it says has bounds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from tidework.errors import ConfigurationError

Key = str | int | float | bool
"""Names an item to a checkpoint."""
Number = int | float

NOTE_LIMIT = 200
"""Characters of a note; what is longer is cut."""
KEY_LIMIT = 200
NAME_LIMIT = 40
MOST_CHECKPOINTS = 16
LARGEST = 2**64
"""Bound of integers, so that readers in other languages can tell neighbours apart."""
TEXT_LIMIT = 65_536
"""Bytes of either text; what the bounds above allow is less."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job said that it is. ``total``: None if it is not known; ``at``: when that came to
    the queue, aware UTC."""

    done: Number
    total: Number | None
    note: str
    at: datetime


class ProgressNote(NamedTuple):
    """What one job says, under its lease.

    sequence: counts the notes of this lease, so that a copy that comes late is known as such
    progress, positions: JSON texts; b'' leaves what the queue has
    """

    job_id: str
    token: str
    sequence: int
    progress: bytes
    positions: bytes


def progress_text(done: Any, total: Any, note: Any) -> bytes:
    """The text of a progress. Raises ConfigurationError for values that are none."""
    most = None if total is None else _count("total", total)
    return _encode([_count("done", done), most, _note(note)])


def read_progress(text: bytes, at: datetime) -> Progress:
    """See progress_text. Raises ValueError for foreign bytes."""
    done, total, note = json.loads(text)
    return Progress(done, total, note, at)


def positions_text(positions: Mapping[str, Key]) -> bytes:
    """The text of where checkpoints stand: name -> key of the last finished item."""
    return _encode(positions)


def read_positions(text: bytes) -> dict[str, Key]:
    """See positions_text; nothing for b''. Raises ValueError for foreign bytes."""
    found = json.loads(text) if text else {}
    if not isinstance(found, dict):
        raise ValueError(f"positions of checkpoints are an object, not {text!r:.100}")
    return found


def check_texts(progress: bytes, positions: bytes) -> None:
    """Raises ValueError for what is not ours, from a process that its job may have broken."""
    if len(progress) > TEXT_LIMIT or len(positions) > TEXT_LIMIT or b"\t" in progress + positions:
        raise ValueError("a text of progress that is too long, or not ours")
    if progress:
        found = json.loads(progress)
        done, total, note = found if isinstance(found, list) and len(found) == 3 else (None,) * 3
        if not isinstance(note, str) or not all(
            isinstance(n, Number | None) for n in (done, total)
        ):
            raise ValueError(f"{progress!r:.100} is not a valid progress")
    read_positions(positions)


def check_key(key: Any, name: str) -> Key:
    """An item's key, as it comes back from the queue. Raises ConfigurationError if it is none."""
    if isinstance(key, str):
        if len(key) <= KEY_LIMIT:
            return str.__str__(key)
        fault = f"a text of {len(key)} characters, at most {KEY_LIMIT} are kept"
    elif isinstance(key, bool):
        return key
    elif isinstance(key, int):
        if abs(key) <= LARGEST:
            return int(key)
        fault = "an integer beyond 64 bits; give it as a text"
    elif isinstance(key, float) and math.isfinite(key):
        return float(key)
    else:
        fault = f"{key!r:.100}; give a text, a number or a boolean"
    raise ConfigurationError(f"{where(name)}: key() of an item returned {fault}")


def where(name: str) -> str:
    """Which checkpoint, in words."""
    return f"checkpoint(name={name!r})" if name else "checkpoint()"


def _count(field: str, value: Any) -> Number:
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not 0 <= value <= LARGEST  # nan is not, either
    ):
        raise ConfigurationError(
            f"progress({field}={value!r:.100}): give a number from 0 on"
            + (", or None if it is not known" if field == "total" else "")
        )
    return value


def _note(note: Any) -> str:
    if not isinstance(note, str):
        raise ConfigurationError(f"progress(note={note!r:.100}): give a text of one line")
    return " ".join(note[:NOTE_LIMIT].split())


def _encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
