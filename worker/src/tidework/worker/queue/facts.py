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
from tidework.worker.held import Line


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """Of one worker.

    specs: the application's tasks; loop_tasks: names of those that can share an event loop, None
    where the worker has slots; both kept up to date by their owner
    hard_timeout, unknown_grace: seconds; of every job, and how long an unknown task is kept
    lease: of claimed jobs; poison_cap: losses that bury one
    """

    incarnation: str
    specs: Mapping[str, TaskSpec]
    hard_timeout: float
    unknown_grace: float
    lease: timedelta = LEASE
    loop_tasks: AbstractSet[str] | None = None
    poison_cap: int = POISON_CAP

    def admit(self, claimed: ClaimedJob) -> Admission | Outcome:
        """See admission.py."""
        return admit(
            claimed,
            self.specs,
            hard_timeout=self.hard_timeout,
            unknown_grace=self.unknown_grace,
            loop_tasks=self.loop_tasks,
        )

    def line_of(self, claimed: ClaimedJob) -> Line:
        """Where it waits. On an event loop a job that was lost before has no neighbours, so that
        innocents are cleared; in a slot none has."""
        is_lost = claimed.losses and self.loop_tasks is not None
        return Line.SOLITARY if is_lost else Line.COMMON
