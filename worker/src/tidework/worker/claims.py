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

        Hungry sources that were granted room longer ago find an idle place left for each.
        """
        longer_ago = 0
        for other in self._turns:
            if other is source:
                break
            longer_ago += other.hungry
        idle = [max(0, free - longer_ago) for free in self._free()]
        beyond, due = [0] * len(idle), _suits(idle, source)
        if ahead and not longer_ago:
            found = [places.ahead() for places in self._places]
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
        much = list(starmap(_is_much, (places.ahead() for places in self._places)))
        rooms = [free > 0 or more for free, more in zip(idle, much, strict=True)]
        if not any(rooms):
            return
        turn = next((found for found in self._turns if found.wants and _suits(rooms, found)), None)
        if any(idle):
            for source in [found for found in self._unsettled if _suits(idle, found)]:
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


def _suits(rooms: Sequence[int], source: JobSource) -> bool:
    """Is there room of a kind that jobs of the source take? What others leave idle says nothing."""
    if len(rooms) == 1:
        return rooms[0] > 0
    shares = zip(rooms, source.shares, strict=True)
    return any(room and share >= WORTH_A_TRY for room, share in shares)


def _fitting(rooms: Sequence[int], source: JobSource) -> int:
    """How many jobs may be claimed so that it is likely that all find places of their modes.

    Jobs cannot be chosen by their mode. One that waits for a place keeps its queue from claiming;
    where a mode has places, one job at a time is tried.
    """
    if len(rooms) == 1:
        return rooms[0]
    want = float(sum(rooms))
    worth_a_try = False
    lines = source.lines[: len(rooms)]
    for room, share, line in zip(rooms, source.shares, lines, strict=True):
        if not room and line and share:
            return 0
        worth_a_try = worth_a_try or (room > 0 and share >= WORTH_A_TRY)
        if share >= 1:
            want = room
        elif share > 0:
            want = min(want, (room + 0.5) / share)
    return max(int(want), int(worth_a_try))
