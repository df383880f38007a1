"""A slot: what a child serves, and when its child is replaced by a new one."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from tidework.worker.places.child_link import ChildLink

logger = logging.getLogger(__name__)

MOST_UNREAPED = 16
"""Ended processes that may lie unreaped below a child; each holds a pid of the container's."""


@dataclass(slots=True, eq=False)
class Slot:
    """One place for one job at a time; or all places of a worker with an event loop.

    places:  of the event loop; 0 = its child runs one job of any kind at a time
    link:    its child, None while there is none
    unready: children that ended before they were ready, in a row
    """

    index: int
    places: int = 0
    link: ChildLink | None = None
    unready: int = 0


@dataclass(frozen=True, slots=True)
class Recycling:
    """A child is replaced after ``jobs`` jobs, of each of its places, or above ``memory`` bytes of
    PSS."""

    jobs: int
    memory: int

    def reason(self, link: ChildLink) -> str | None:
        """Why this child is to be replaced, in words."""
        if link.outdated:
            return "the application was loaded again"
        if link.worn:
            return link.worn
        if link.spent:
            return "a job was cancelled in it"
        if link.done >= self.jobs * max(1, link.places):
            return f"{link.done} jobs"
        if link.pss > self.memory:
            return f"{link.pss >> 20} MiB"
        if link.unreaped > MOST_UNREAPED:
            return f"{link.unreaped} ended processes that nobody reaped"
        return None

    def room(self, link: ChildLink) -> int:
        """How many jobs more the child may be sent before it is replaced."""
        if link.outdated or link.worn or link.spent or link.pss > self.memory:
            return 0
        return self.jobs - link.done - len(link.jobs)


def note_recycled(link: ChildLink, reason: str) -> None:
    """Log that a child is replaced as planned."""
    extra = {
        "event": "child_recycled",
        "slot": link.slot,
        "child": link.pid,
        "reason": reason,
    }
    logger.info("child recycled", extra=extra)
