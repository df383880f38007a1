"""Claims: whose turn it is to claim jobs, and how many.

Sources (queues) take turns: room goes to the one that was granted some longest ago, as a batch
worth an exchange, so that a worker of many queues pays no more for a job than one of a single
queue. A source whose exchange is not answered has no turn and keeps nobody waiting.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from tidework.worker.held import JobSource


class Room(Protocol):
    """What claims have to know of the places where jobs run."""

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
    kept: idle places that nobody else is granted until the claim was answered
    due:  is the room worth an exchange of its own?
    """

    want: int
    kept: int
    due: bool


NO_ROOM = Grant(0, 0, due=False)


class Claims:
    """Grants room in ``places`` to the sources of the worker."""

    def __init__(self, places: Room) -> None:
        self._places = places
        self._turns: deque[JobSource] = deque()
        self._kept = 0
        self._unsettled: dict[JobSource, None] = {}

    def add_source(self, source: JobSource) -> None:
        """Grant this one room as well, after the others."""
        self._turns.append(source)

    def reserve(self, source: JobSource, *, ahead: bool) -> Grant:
        """What ``source`` may claim now, ``ahead`` of free places too; give it back by ``close``.

        Hungry sources that were granted room longer ago find an idle place left for each, and
        claim ahead first.
        """
        free = self._free()
        before = self._hungry_before(source, free)
        idle = max(0, free - before)
        room, most = self._places.ahead() if ahead and not before else (0, 0)
        want = idle + room
        if not want:
            return NO_ROOM
        self._turns.remove(source)
        self._turns.append(source)
        self._kept += idle
        return Grant(want, idle, due=idle > 0 or _is_much(room, most))

    def _hungry_before(self, source: JobSource, free: int) -> int:
        """How many hungry sources were granted room longer ago than ``source``; it is not counted
        on where they would take all that is free."""
        count = 0
        for other in self._turns:
            if other is source or count > free:
                break
            count += other.hungry
        return count

    def room_of(self, source: JobSource) -> int:
        """How many places jobs of ``source`` have, or would if the free ones were shared out."""
        return self._places.running(source) + self._free() // len(self._turns)

    def note_unsettled(self, source: JobSource) -> None:
        """It has outcomes from now on, and is to settle once there is room."""
        self._unsettled[source] = None

    def close(self, grant: Grant) -> None:
        """The claim was answered, or is not made."""
        self._kept -= grant.kept

    def offer(self) -> None:
        """If there is room, have the source claim whose turn it is. If places are idle, have the
        others settle: else it is soon enough when their outcomes are due."""
        idle = self._free()
        if not idle and not _is_much(*self._places.ahead()):
            return
        turn = next((source for source in self._turns if source.wants), None)
        if idle:
            unsettled = list(self._unsettled)
            self._unsettled.clear()
            for source in unsettled:
                if source is not turn and source.unsettled:
                    source.on_capacity()
        if turn is not None:
            turn.on_capacity()

    def _free(self) -> int:
        return max(0, self._places.idle() - self._kept)


def _is_much(room: int, most: int) -> bool:
    """Is room for jobs ahead worth an exchange?"""
    return 2 * room >= most > 0
