"""What an autoscaler decided for a queue, as it is kept for people to read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from tidework.clock import from_ms

MOST_KEPT = 100


@dataclass(frozen=True, slots=True)
class Scaled:
    """before, replicas: asked for until then, and from then on
    wanted:  what the load asks for, within the bounds of the queue
    reason:  in words, with the numbers; limits: what makes replicas differ from wanted
    backlog, running: jobs that it was decided for, None if they could not be counted
    """

    before: int
    replicas: int
    wanted: int
    reason: str
    limits: tuple[str, ...] = ()
    backlog: int | None = None
    running: int | None = None

    def encode(self) -> str:
        """Compact JSON, for ``decode`` of this version and of later ones."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def decode(cls, raw: str) -> Scaled:
        """Read what ``encode`` wrote, of whatever version. Raises ValueError, KeyError."""
        found: dict[str, Any] = json.loads(raw)
        return cls(
            before=int(found["before"]),
            replicas=int(found["replicas"]),
            wanted=int(found["wanted"]),
            reason=str(found["reason"]),
            limits=tuple(str(each) for each in found.get("limits", ())),
            backlog=found.get("backlog"),
            running=found.get("running"),
        )


@dataclass(frozen=True, slots=True)
class DatedScaled:
    """When it was decided, by Redis' clock."""

    at: datetime
    scaled: Scaled


@dataclass(frozen=True, slots=True)
class ScalingRecord:
    """latest: None if no autoscaler has told of the queue. steps: the last decisions that changed
    something, newest first, MOST_KEPT at most."""

    latest: DatedScaled | None = None
    steps: tuple[DatedScaled, ...] = ()


def read_scaled(entry: str) -> DatedScaled:
    """An entry as it is stored: ms, a blank, JSON. Raises ValueError, KeyError."""
    ms, _, raw = entry.partition(" ")
    return DatedScaled(from_ms(int(ms)), Scaled.decode(raw))
