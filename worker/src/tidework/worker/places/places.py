"""What the pool asks of the places where jobs run, and what these ask of the pool.

A worker has places of one kind: slots, with a child each for one job at a time (slot_places.py), or
the places of one event loop, which share a child (loop_places.py). The pool has the children's
lives in hand; the places say which job goes into which child, and when a job has run too long.
"""

from __future__ import annotations

from typing import Protocol

from tidework.worker.held import HeldJob, StopReason
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.claims import Room
from tidework.worker.places.service_times import ServiceTimes
from tidework.worker.places.slot import Slot
from tidework.worker.places.turns import Turns

AHEAD_IN_CHILD = 8
"""Jobs that may lie in a child's pipe behind those that run."""
START_PATIENCE = 30.0
"""Seconds in which a child has to start a job, and the template a child."""
START_LOOK = 1.0
"""Seconds after which a child is asked for a job that it has not begun."""
PATIENCE = 0.1
"""Seconds that a job may run before those behind it are taken back."""


class Places(Room, Protocol):
    """The places of a worker.

    turns: jobs that wait for one
    times: how long jobs ran
    """

    turns: Turns
    times: ServiceTimes

    @property
    def busy(self) -> int:
        """Places with a job. Also asked from the thread of the probes."""

    def run(self) -> None:
        """Find waiting jobs and send them into children."""

    def on_reports(self, link: ChildLink) -> None:
        """All reports of the child that had arrived were told: send it what comes next."""

    def stop(self, link: ChildLink, job: HeldJob, stop_reason: StopReason) -> None:
        """Have a job in a child end; the first reason stands."""

    def look(self, link: ChildLink, now: float) -> float | None:
        """Stop jobs that are overdue, those of a child that is ready; returns when to look at
        it again, None = not before it has a job."""

    def take_out(self, slot: Slot) -> None:
        """The slot's child takes no more jobs."""

    def forget(self, link: ChildLink) -> None:
        """The child has ended."""

    def renew(self) -> None:
        """The children are outdated: replace those in which no job runs."""

    def recycle_idle(self) -> None:
        """Replace children in which no job runs and that have served their time."""

    def note_memory(self, free: float) -> None:
        """So many bytes are left before memory gets scarce; negative: it is."""


class Lives(Protocol):
    """What the pool does with children."""

    def order(self, slot: Slot, *, solitary: bool = False) -> ChildLink | None:
        """One more child for the slot; ``solitary``: for one job. None if that cannot be now."""

    def retire(self, link: ChildLink) -> None:
        """Have a child without jobs end."""

    def retire_if_done(self, link: ChildLink) -> None:
        """Have a child end that was started for one job, once that has left it."""

    def recycle(self, slot: Slot, link: ChildLink) -> bool:
        """Replace a child without jobs if there is a reason. True if there is."""
