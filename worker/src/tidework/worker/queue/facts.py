"""What the consumers of a worker have in common."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta

from tidework.model.lease import LEASE, POISON_CAP, ClaimedJob
from tidework.model.outcome import Outcome
from tidework.model.task import TaskSpec
from tidework.worker.admission import Admission, admit
from tidework.worker.queue.modes import Modes


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """Of one worker.

    specs: the application's tasks, async_tasks: names of its async functions, both kept up to
    date by their owner; async_slots: places for them
    hard_timeout, unknown_grace: seconds; of every job, and how long an unknown task is kept
    lease: of claimed jobs; poison_cap: losses that bury one
    """

    incarnation: str
    specs: Mapping[str, TaskSpec]
    hard_timeout: float
    unknown_grace: float
    lease: timedelta = LEASE
    async_tasks: AbstractSet[str] = frozenset()
    async_slots: int = 0
    poison_cap: int = POISON_CAP

    def admit(self, claimed: ClaimedJob) -> Admission | Outcome:
        """See admission.py."""
        return admit(
            claimed,
            self.specs,
            hard_timeout=self.hard_timeout,
            unknown_grace=self.unknown_grace,
        )

    def new_modes(self) -> Modes:
        """For one more queue."""
        return Modes(self.specs, self.async_tasks, self.async_slots)
