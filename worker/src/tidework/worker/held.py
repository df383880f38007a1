"""Jobs under a lease of ours, and who answers for them.

A held job is in exactly one place: waiting at its source, in a child, or ended and not yet
settled. It leaves only when an exchange has settled it, or when its lease is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tidework.model.lease import ClaimedJob
from tidework.model.outcome import Outcome
from tidework.model.task import TaskSpec


class JobSource(Protocol):
    """Where held jobs come from and their outcomes go: a consumer.

    index:   place of its queue among the worker's, as frames count them
    waiting: jobs that are not in a child yet, first come first served
    """

    index: int
    waiting: deque[HeldJob]

    @property
    def hungry(self) -> bool:
        """Would it claim jobs if it were given a slot?"""

    def settle(self, job: HeldJob, outcome: Outcome, seconds: float | None) -> None:
        """The attempt ended; ``seconds`` that it ran, None if it was not started."""

    def forget(self, job: HeldJob) -> None:
        """The job is no longer ours and nothing is to be settled."""

    def take_back(self, jobs: Sequence[HeldJob]) -> None:
        """These were on their way into a child and did not start."""

    def on_capacity(self) -> None:
        """A slot has nothing to do: settle now, and claim if hungry."""


@dataclass(slots=True, eq=False)
class HeldJob:
    """A claimed job.

    timeout:    seconds, the smaller of the job's, the task's and the worker's bound
    claimed_at, sent_at: monotonic seconds; started_at: by the child's report, None before
    outcome:    how it ended; it stays held until the exchange has settled it
    """

    claimed: ClaimedJob
    source: JobSource
    spec: TaskSpec
    timeout: float
    max_attempts: int
    claimed_at: float
    number: int = 0
    sent_at: float = 0.0
    started_at: float | None = None
    outcome: Outcome | None = None

    @property
    def id(self) -> str:
        """Of the job."""
        return self.claimed.id

    @property
    def task(self) -> str:
        """Its task's name."""
        return self.spec.name
