"""Claims: whose turn it is to claim jobs, and how many.

Sources (queues) take turns: room goes to the one that was granted some longest ago, as a batch
worth an exchange, so that a worker of many queues pays no more for a job than one of a single
queue. A source whose exchange is not answered has no turn and keeps nobody waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap
from operator import gt
from typing import Protocol

from tidework.worker.held import JobSource

WORTH_A_TRY = 0.02
"""Share of a mode in a queue from which on a job is tried although other places are full."""


class Places(Protocol):
    """Where jobs run: slots, or places of the loop."""

    def idle(self) -> int:
        """Places with nothing in them."""

    def ahead(self) -> tuple[int, int]:
        """Jobs that may be claimed beyond these, and how many could be if none were."""

    def running(self, source: JobSource) -> int:
        """Places that jobs of ``source`` have."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Room for a claim.

    want: jobs to claim at most
    kept: idle places, by kind, that nobody else is granted until the claim was answered
    due:  is the room worth an exchange of its own?
    """

    want: int
    kept: tuple[int, ...]
    due: bool


NO_ROOM = Grant(0, (), due=False)


class Claims:
    """Grants room to the sources of the worker.

    places: slots, and after them those of the loop where there is one. Lost async jobs take the
            latter, which count them
    """

    def __init__(self, places: Sequence[Places]) -> None:
        self._places = places
        self._turns: deque[JobSource] = deque()
        self._kept = [0] * len(places)
        self._unsettled: dict[JobSource, None] = {}

    def add_source(self, source: JobSource) -> None:
        """Grant this one room as well, after the others."""
        self._turns.append(source)

    def reserve(self, source: JobSource, *, ahead: bool) -> Grant:
        """What ``source`` may claim now, ``ahead`` of free places too; give it back by ``close``.

        Hungry sources that were granted room longer ago find an idle place left for each, of the
        kinds that they would take.
        """
        idle = self._free()
        found = [places.ahead() for places in self._places]
        longer_ago = self._longer_ago(source, idle, _total(idle, found))
        idle = [max(0, free - others) for free, others in zip(idle, longer_ago, strict=True)]
        beyond, due = [0] * len(idle), _suits(idle, source)
        if ahead:
            # Whoever was granted some longer ago claims ahead first.
            found = [(0, 0) if n else each for n, each in zip(longer_ago, found, strict=True)]
            beyond = [room for room, _ in found]
            due = due or _suits(list(starmap(_is_much, found)), source)
        rooms = [free + more for free, more in zip(idle, beyond, strict=True)]
        want = _fitting(rooms, source)
        if not want:
            return Grant(0, (0,) * len(idle), due=False)
        self._turns.remove(source)
        self._turns.append(source)
        kept = tuple(min(want, free) for free in idle)
        self._keep(kept, 1)
        return Grant(want, kept, due)

    def _longer_ago(
        self, source: JobSource, idle: Sequence[int], rooms: Sequence[int]
    ) -> list[int]:
        """By kind of place, how many hungry sources before ``source`` would take some; it is not
        counted on where they would take all."""
        counts = [0] * len(rooms)
        for other in self._turns:
            if other is source:
                break
            if other.hungry and not _is_stuck(rooms, other):
                for kind in _kinds(len(rooms), other):
                    counts[kind] += 1
                if all(map(gt, counts, idle)):
                    break
        return counts

    def room_of(self, source: JobSource) -> int:
        """How many places jobs of ``source`` have, or would if the free ones were shared out."""
        free = [count // len(self._turns) for count in self._free()]
        return sum(p.running(source) for p in self._places) + _fitting(free, source)

    def note_unsettled(self, source: JobSource) -> None:
        """It has outcomes from now on, and is to settle once there is room."""
        self._unsettled[source] = None

    def close(self, grant: Grant) -> None:
        """The claim was answered, or is not made."""
        self._keep(grant.kept, -1)

    def _keep(self, kept: tuple[int, ...], times: int) -> None:
        for mode, count in enumerate(kept):
            self._kept[mode] += times * count

    def offer(self) -> None:
        """If there is room, have the source claim whose turn it is. If places are idle, have the
        others settle: else it is soon enough when their outcomes are due."""
        idle = self._free()
        found = [places.ahead() for places in self._places]
        much = [free > 0 or _is_much(*each) for free, each in zip(idle, found, strict=True)]
        if not any(much):
            return
        rooms = _total(idle, found)
        able = (each for each in self._turns if each.wants and not _is_stuck(rooms, each))
        turn = next((each for each in able if _suits(much, each)), None)
        if any(idle):
            for source in [each for each in self._unsettled if _suits(idle, each)]:
                del self._unsettled[source]
                if source is not turn and source.unsettled:
                    source.on_capacity()
        if turn is not None:
            turn.on_capacity()

    def _free(self) -> list[int]:
        return [
            max(0, places.idle() - kept)
            for places, kept in zip(self._places, self._kept, strict=True)
        ]


def _is_much(room: int, most: int) -> bool:
    """Is room for jobs ahead worth an exchange?"""
    return 2 * room >= most > 0


def _total(idle: Sequence[int], found: Sequence[tuple[int, int]]) -> list[int]:
    return [free + more for free, (more, _) in zip(idle, found, strict=True)]


def _kinds(count: int, source: JobSource) -> Sequence[int]:
    """Of ``count`` kinds of places, those that jobs of the source take."""
    if count == 1:
        return (0,)
    return [kind for kind, share in enumerate(source.shares) if share >= WORTH_A_TRY]


def _suits(rooms: Sequence[int], source: JobSource) -> bool:
    """Is there room of a kind that jobs of the source take? What others leave idle says nothing."""
    return any(rooms[kind] for kind in _kinds(len(rooms), source))


def _is_stuck(rooms: Sequence[int], source: JobSource) -> bool:
    """Does a job of the source wait for a place of its mode? It keeps its queue from claiming."""
    if len(rooms) == 1:
        return False
    waiting = zip(rooms, source.shares, source.lines, strict=False)
    return any(line and share and not room for room, share, line in waiting)


def _fitting(rooms: Sequence[int], source: JobSource) -> int:
    """How many jobs may be claimed so that it is likely that all find places of their modes.

    Jobs cannot be chosen by their mode. Where a mode has places, one job at a time is tried.
    """
    if len(rooms) == 1:
        return rooms[0]
    if _is_stuck(rooms, source):
        return 0
    want = float(sum(rooms))
    for room, share in zip(rooms, source.shares, strict=True):
        if share >= 1:
            want = room
        elif share > 0:
            want = min(want, (room + 0.5) / share)
    return max(int(want), int(_suits(rooms, source)))
