"""Modes: how the jobs of a queue run, and how many of each kind it holds, as far as was seen. Pure.

Which task a claim brings is not known before. An application with one kind of task is simple:
all its jobs are of that mode. With both, the share is learned from what was claimed.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import timedelta

from tidework.model.lease import ClaimedJob
from tidework.model.task import TaskSpec
from tidework.worker.admission import again_after
from tidework.worker.held import Mode

KEPT_AFTER = 10
"""Releases after which a job that finds no place is not given back any more."""
SOON_AGAIN = 5
"""Times that a job of an application with one mode may be claimed again at once."""
_WEIGHT = 0.05
_LEAST = 0.001


class Modes:
    """Of one queue.

    specs: the application's tasks; async_tasks: names of its async functions, both kept up to
    date by their owner; async_slots: 0 = every job runs alone
    """

    def __init__(
        self, specs: Mapping[str, TaskSpec], async_tasks: AbstractSet[str], async_slots: int
    ) -> None:
        self._specs = specs
        self._async_tasks = async_tasks
        self._any = async_slots > 0
        self._shared = 0.5

    def mode_of(self, task: str, losses: int) -> Mode:
        """A job that was lost before runs alone, so that innocents are cleared."""
        if not self._any or task not in self._async_tasks:
            return Mode.ALONE
        return Mode.SOLITARY if losses else Mode.SHARED

    def note(self, mode: Mode) -> None:
        """Such a job was claimed."""
        self._shared += _WEIGHT * ((mode is not Mode.ALONE) - self._shared)

    @property
    def _may_find_no_place(self) -> bool:
        return self._any and bool(self._async_tasks)

    def delay_of(self, claimed: ClaimedJob) -> timedelta:
        """After what time a job that found no place may be claimed again.

        Where there are two modes it would be the next to be claimed, and the next again. Else
        somebody has a place; but it does not go through all workers of a fleet that have none.
        """
        before = claimed.releases if self._may_find_no_place else claimed.releases - SOON_AGAIN
        return timedelta(0) if before < 0 else again_after(before)

    def keeps(self, claimed: ClaimedJob) -> bool:
        """Is the job to wait here, however long? Releases beyond the queue's cap are counted."""
        return self._may_find_no_place and claimed.releases >= KEPT_AFTER

    @property
    def shares(self) -> tuple[float, float]:
        if not self._may_find_no_place:
            return 1.0, 0.0
        if len(self._async_tasks) == len(self._specs):
            return 0.0, 1.0
        shared = min(1 - _LEAST, max(_LEAST, self._shared))
        return 1 - shared, shared
