"""What the Broker answers, where a plain value would not say it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from tidework.model.fire import Suspension


@dataclass(frozen=True, slots=True)
class UpkeepReply:
    """Numbers of jobs that one round of upkeep moved; ``next_due`` as in ExchangeReply.

    documents:    in the inbox and in intake, not validated yet
    dead:         dead letters now, and dead_limit: how many the queue keeps
    dead_dropped: how many it ever dropped for their number, before their time was over
    """

    promoted: int
    reaped: int
    buried: int
    pruned: int
    next_due: timedelta | None
    dead: int = 0
    dead_limit: int = 0
    dead_dropped: int = 0
    documents: int = 0


class CancelAnswer(StrEnum):
    """REQUESTED: it runs, and its worker will stop it."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    FINISHED = "finished"
    UNKNOWN = "unknown"


class PromoteAnswer(StrEnum):
    """HELD: it waits for the end of the job that it replaces. READY: it was due already."""

    PROMOTED = "promoted"
    UNKNOWN = "unknown"
    HELD = "held"
    READY = "ready"
    RUNNING = "running"
    ENDED = "ended"


class ReplayAnswer(StrEnum):
    """UNIQUE: another job holds its unique key by now. CUT: of a document that was too large only
    the beginning was kept. Both stay dead."""

    REPLAYED = "replayed"
    UNKNOWN = "unknown"
    NOT_DEAD = "not_dead"
    UNIQUE = "unique"
    CUT = "cut"


class DeleteAnswer(StrEnum):
    """RUNNING: it stays; cancel it first."""

    DELETED = "deleted"
    RUNNING = "running"
    UNKNOWN = "unknown"


class PurgeAnswer(StrEnum):
    """UNFINISHED: cancel it first."""

    PURGED = "purged"
    UNKNOWN = "unknown"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class SuspendAnswer:
    """The suspension that holds; ``before``: another one did so already, and stays."""

    suspension: Suspension
    before: bool = False


@dataclass(frozen=True, slots=True)
class CordonAnswer:
    """A worker was cordoned by a person: the ``leases`` that it still holds; ``before``: and so it
    was already."""

    leases: int
    before: bool


@dataclass(frozen=True, slots=True)
class UncordonAnswer:
    """``undone``: a person had cordoned it. ``still``: the autoscaler does, for now."""

    undone: bool
    still: bool


class OnceAnswer(StrEnum):
    """Whether a job is the one to do a block. PENDING: another job is at it, under a lease that
    stands; LOST: the caller's own lease does not."""

    FIRST = "first"
    DONE = "done"
    PENDING = "pending"
    LOST = "lost"
