"""What the exchange carries: requests and replies between a worker and its queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from tidework.model.identity import QueueName
from tidework.model.outcome import Outcome

LEASE = timedelta(seconds=12)
RENEW_EVERY = timedelta(seconds=4)
POISON_CAP = 3
RELEASE_CAP = 20
ANTI_STARVATION = 10
TOMBSTONE_MS = 600_000
"""How long after its end a deleted job is known: its id enqueues nothing."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Bounds that the scripts apply.

    lease:           time after which a claimed job that nobody renews is reaped
    poison_cap:      losses after which a job is dead
    release_cap:     releases after which the next one counts as an attempt
    keep_succeeded, keep_dead: retention by time; keep_count: by number, per state
    keep_presence:   what a worker said of itself, after its last beat
    """

    lease: timedelta = LEASE
    poison_cap: int = POISON_CAP
    release_cap: int = RELEASE_CAP
    keep_succeeded: timedelta = timedelta(hours=1)
    keep_dead: timedelta = timedelta(days=7)
    keep_count: int = 10_000
    keep_presence: timedelta = timedelta(minutes=5)


LimitsOf = Callable[[QueueName], QueueLimits]
"""The bounds of each queue."""


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job under a lease. ``body`` is the envelope as it was enqueued."""

    id: str
    token: str
    attempt: int
    deliveries: int
    losses: int
    releases: int
    body: bytes


class Lease(NamedTuple):
    """A claim of one job, as whoever acts under it names it."""

    job_id: str
    token: str


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of one attempt, for the exchange. Valid only with the token of the claim."""

    id: str
    token: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class RunTimes:
    """How long attempts ran: their number, seconds in all, and how many in each bucket that has
    any (``statistics.bucket_of``)."""

    count: int
    seconds: float
    buckets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class ExchangeRequest:
    """Settle and claim in one step.

    sequence: counts the incarnation's exchanges with this queue, from 1; a resend repeats it
    want:     how many jobs to claim at most
    woken:    a wake-up marker was taken from the inbox and is to be removed from intake
    served:   task -> attempts that ran since the last exchange
    most_held: None, or of one sent behind a wait (``Broker.wait_then_exchange``): it claims only as
              far as the incarnation holds no more leases of the queue than that. Such a one has the
              next number like any other, and is resent like any other; of the two kinds each is
              only compared with its own.
    """

    incarnation: str
    sequence: int
    want: int
    settlements: tuple[Settlement, ...] = ()
    woken: bool = False
    served: Mapping[str, RunTimes] = field(default_factory=dict)
    most_held: int | None = None


@dataclass(frozen=True, slots=True)
class ExchangeReply:
    """claimed: under a lease from now on; refused: ids whose lease was lost (result refused);
    next_due: wait until something becomes due or a lease runs out, None = nothing known;
    backlog: ready jobs left; intake: documents that lie unvalidated in inbox or intake;
    cordoned: the worker is, so nothing was claimed for it; paused: the queue is, likewise;
    stacks_asked: it claimed nothing, and somebody waits for its stacks, see ``Broker.beat``."""

    claimed: tuple[ClaimedJob, ...]
    refused: tuple[str, ...]
    next_due: timedelta | None
    backlog: int
    intake: int
    cordoned: bool = False
    paused: bool = False
    stacks_asked: bool = False


@dataclass(frozen=True, slots=True)
class RenewReply:
    """lost: ids no longer ours; cancel: ids whose cancellation was requested; cordoned: the
    worker is, and gets no jobs until it is told otherwise; paused: nobody does;
    stacks_asked: somebody waits for its stacks, see ``Broker.beat``."""

    lost: tuple[str, ...]
    cancel: tuple[str, ...]
    next_due: timedelta | None
    intake: int
    cordoned: bool = False
    paused: bool = False
    stacks_asked: bool = False


@dataclass(frozen=True, slots=True)
class CordonedWorker:
    """A worker that claims nothing for now, and how many leases it still holds."""

    incarnation: str
    leases: int
