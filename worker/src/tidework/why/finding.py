"""One reason why a job does not run, or what it does instead."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Case(StrEnum):
    """Everything that can be said of a job; docs/why.md has them all."""

    UNKNOWN = "unknown"
    ELSEWHERE = "elsewhere"
    FORGOTTEN = "forgotten"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    RUNNING = "running"
    CANCEL_REQUESTED = "cancel_requested"
    WORKER_SILENT = "worker_silent"
    DUE_LATER = "due_later"
    RETRY_PAUSE = "retry_pause"
    LOSS_PAUSE = "loss_pause"
    RELEASE_PAUSE = "release_pause"
    HELD = "held"
    NOT_PROMOTED = "not_promoted"
    PAUSED = "paused"
    NO_WORKER = "no_worker"
    UNKNOWN_TASK = "unknown_task"
    ALL_CORDONED = "all_cordoned"
    ALL_BUSY = "all_busy"
    IN_LINE = "in_line"
    ABOUT_TO_RUN = "about_to_run"


@dataclass(frozen=True, slots=True)
class Finding:
    """text: one sentence or two; remedy: what to do, '' if nothing has to be done.

    until: when the reason ends by itself, None if it does not or nobody knows
    ahead: jobs that are before it in line; wait_s: about how long it still waits, seconds
    """

    case: Case
    text: str
    remedy: str = ""
    until: datetime | None = None
    ahead: int | None = None
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """findings: the reason first, then what would come in its way as well."""

    findings: tuple[Finding, ...]

    @property
    def main(self) -> Finding:
        """The reason."""
        return self.findings[0]
