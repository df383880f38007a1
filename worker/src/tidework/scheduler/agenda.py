"""Where each CronTask of a queue stands: what has to be done with it next, and when.

An entry is in one place at a time. Moving it invalidates what lies of it in its former line (its
``place`` number changed), so that leaving a line costs nothing.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from itertools import count

from tidework.scheduler.due import Gap
from tidework.scheduler.spec import CronSpec


class Phase(Enum):
    """What comes next for an entry."""

    IDLE = auto()  # nothing: this scheduler does not lead the queue
    ADMIT = auto()  # read or make its record
    ARM = auto()  # find the next fire time
    WAIT = auto()  # for its fire time
    CATCH_UP = auto()  # decide the fires of a long gap, in steps
    DORMANT = auto()  # nothing, until its CronTask changes


@dataclass(slots=True, eq=False)
class CronEntry:
    """The scheduler's own view of one CronTask.

    changed:   when this fingerprint was first seen; resumed: when a suspension was seen to end
    watermark: last decided second as far as known, None before the first admission
    first:     first undecided fire, once armed
    """

    spec: CronSpec
    fingerprint: str
    changed: datetime
    resumed: datetime | None = None
    watermark: int | None = None
    first: datetime | None = None
    gap: Gap | None = None
    phase: Phase = Phase.IDLE
    place: int = 0


class Agenda:
    """The entries of one queue, by uid and by what comes next."""

    def __init__(self) -> None:
        self.entries: dict[str, CronEntry] = {}
        self._places = count(1)
        self._lines: dict[Phase, deque[tuple[int, CronEntry]]] = {
            phase: deque() for phase in (Phase.ADMIT, Phase.ARM, Phase.CATCH_UP)
        }
        self._waiting: list[tuple[datetime, int, CronEntry]] = []

    def put(self, entry: CronEntry, phase: Phase) -> None:
        """Move an entry to the end of a phase's line."""
        entry.phase = phase
        entry.place = next(self._places)
        if phase is Phase.WAIT:
            if entry.first is None:
                raise ValueError(f"CronTask {entry.spec.name} waits for no fire time")
            heapq.heappush(self._waiting, (entry.first, entry.place, entry))
        elif phase in self._lines:
            self._lines[phase].append((entry.place, entry))

    def put_all(self, phase: Phase) -> None:
        """Move every entry."""
        for line in self._lines.values():
            line.clear()
        self._waiting.clear()
        for entry in self.entries.values():
            self.put(entry, phase)

    def remove(self, uid: str) -> None:
        """Forget an entry."""
        self.put(self.entries.pop(uid), Phase.IDLE)

    def take(self, phase: Phase, limit: int) -> list[CronEntry]:
        """The first entries of a line; whoever takes one puts it somewhere."""
        line = self._lines[phase]
        taken: list[CronEntry] = []
        while line and len(taken) < limit:
            place, entry = line.popleft()
            if place == entry.place:
                taken.append(entry)
        return taken

    def take_due(self, now: datetime, limit: int) -> list[CronEntry]:
        """Waiting entries whose fire time has come, earliest first."""
        taken: list[CronEntry] = []
        while len(taken) < limit:
            first = self.next_due()
            if first is None or first > now:
                break
            taken.append(heapq.heappop(self._waiting)[2])
        return taken

    def next_due(self) -> datetime | None:
        """The earliest fire time that an entry waits for."""
        while self._waiting and self._waiting[0][1] != self._waiting[0][2].place:
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def has_work(self) -> bool:
        """Does an entry stand in a line that does not wait for a time?"""
        return any(self._fronts())

    def _fronts(self) -> Iterator[bool]:
        for line in self._lines.values():
            while line and line[0][0] != line[0][1].place:
                line.popleft()
            yield bool(line)
