"""Jobs under a lease of ours, and who answers for them.

A held job is in exactly one place: waiting in a line of its source, in a child, or ended and not
yet settled. It leaves only when an exchange has settled it, or when its lease is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, Protocol

from tidework.model.identity import QueueName
from tidework.model.lease import ClaimedJob
from tidework.model.outcome import Outcome
from tidework.model.task import TaskSpec


class Line(IntEnum):
    """Where a job waits for its place.

    COMMON:   for a slot, or for a place on the event loop that jobs share
    SOLITARY: lost before in a worker with an event loop: for a child of its own
    """

    COMMON = 0
    SOLITARY = 1


class StopReason(StrEnum):
    """Why a job is stopped, or its child killed.

    BLOCKED: its event loop does not turn; BROKEN: it speaks no frames, or closed its pipe
    MEMORY, ROOM: it was the largest when memory was short, and grew; or was only large
    """

    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    LEASE_LOST = "lease_lost"
    WORKER_LEAVES = "worker_leaves"
    BLOCKED = "blocked"
    BROKEN = "broken"
    MEMORY = "memory"
    ROOM = "room"


class Notes(Protocol):
    """Where what jobs say of themselves goes."""

    def note(self, job: HeldJob) -> None:
        """It has said something new."""


class JobSource(Protocol):
    """Where held jobs come from and their outcomes go: a consumer.

    queue: where its jobs are from
    index: place of the queue among the worker's, as frames count them
    lines: jobs that are not in a child yet, first come first served
    held:  by id, all that no exchange has settled yet
    """

    queue: QueueName
    index: int
    held: dict[str, HeldJob]
    lines: tuple[deque[HeldJob], ...]

    @property
    def notes(self) -> Notes:
        """Where what its jobs say of themselves goes."""

    @property
    def hungry(self) -> bool:
        """May there be jobs that it would claim if it were given a place?"""

    @property
    def wants(self) -> bool:
        """Is it hungry, or does it know of jobs?"""

    @property
    def unsettled(self) -> bool:
        """Are there outcomes that an exchange has to take along?"""

    def settle(self, job: HeldJob, outcome: Outcome, seconds: float | None) -> None:
        """The attempt ended; ``seconds`` that it ran, None if it was not started."""

    def forget(self, job: HeldJob) -> None:
        """The job is no longer ours and nothing is to be settled."""

    def take_back(self, jobs: Sequence[HeldJob]) -> None:
        """These were on their way into a child and did not start."""

    def on_capacity(self) -> None:
        """There is room: settle now, and claim if wanted."""


@dataclass(slots=True, eq=False)
class HeldJob:
    """A claimed job.

    timeout:    seconds, the smaller of the job's, the task's and the worker's bound
    claimed_at, sent_at: monotonic seconds; started_at: by the child's report, None before
    stop_reason: why it was told to end, at ``stopped_at``; it has ``patience`` seconds for that
    insisted:   it was told once more; asked_back: to end after its item, since the worker leaves
    progress, positions: what it said last in this delivery (model/progress.py), b'' if nothing;
                ``said`` counts how often
    outcome:    how it ended; it stays held until the exchange has settled it
    """

    claimed: ClaimedJob
    source: JobSource
    spec: TaskSpec
    timeout: float
    max_attempts: int
    claimed_at: float
    line: Line = Line.COMMON
    number: int = 0
    sent_at: float = 0.0
    started_at: float | None = None
    stop_reason: StopReason | None = None
    stopped_at: float = 0.0
    patience: float = 0.0
    insisted: bool = False
    asked_back: bool = False
    said: int = 0
    progress: bytes = b""
    positions: bytes = b""
    outcome: Outcome | None = None

    @property
    def id(self) -> str:
        return self.claimed.id

    @property
    def task(self) -> str:
        """Its task's name."""
        return self.spec.name

    @property
    def log_fields(self) -> dict[str, Any]:
        """What a line in the log says of it."""
        return {
            "job_id": self.id,
            "task": self.task,
            "queue": self.source.queue.name,
            "attempt": self.claimed.attempt,
        }


def unended(
    held: Mapping[str, HeldJob], ids: Sequence[str], tokens: Mapping[str, str]
) -> list[HeldJob]:
    """Held jobs of these ids whose outcome is open: an exchange tells of the others.

    tokens: id -> lease token that was asked about; since then we may have claimed it anew
    """
    found = [held[job_id] for job_id in ids if job_id in held]
    return [job for job in found if job.outcome is None and job.claimed.token == tokens[job.id]]
