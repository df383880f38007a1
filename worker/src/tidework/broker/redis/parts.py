"""The parts of long replies by name, in the order of the line ``-- reply:`` of each script.

Scripts return parts by position: names on the wire would cost Redis 2 to 3 % of an exchange without
work, and us as much again to read them. So the names stand in the script's header and here, and a
test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class ExchangeParts(NamedTuple):
    """See exchange.lua, which may answer with {'stale', last sequence} instead."""

    status: bytes
    next_due: int
    ready: int
    documents: int
    refused: Sequence[bytes]
    claimed: Sequence[Sequence[Any]]
    cordoned: int
    paused: int
    stacks_asked: int


class RenewParts(NamedTuple):
    """See renew.lua."""

    next_due: int
    documents: int
    lost: Sequence[bytes]
    cancelling: Sequence[bytes]
    cordoned: int
    paused: int
    stacks_asked: int


class ReapParts(NamedTuple):
    """See reap.lua."""

    given_back: int
    buried: int
    next_due: int


class PruneParts(NamedTuple):
    """See prune.lua."""

    pruned: int
    dead: int
    dropped: int
    documents: int


class GatherParts(NamedTuple):
    """See gather.lua."""

    now: int
    backlog: int
    due_soon: int
    running: int
    oldest_age: int
    next_due: int
    enqueued: int
    leases: Sequence[bytes]
    service_times: Sequence[bytes]
    paused: int
    unknown: int
    unknown_task: bytes
    announced: bytes


class JobParts(NamedTuple):
    """See get_job.lua."""

    state: bytes
    body: bytes
    priority: int
    attempt: int
    deliveries: int
    losses: int
    releases: int
    cancel: int
    due: int
    changed: int
    started: int
    token: bytes
    cron: bytes
    detail: bytes
    unique: bytes
    history: bytes
    progress: bytes


class StatsParts(NamedTuple):
    """See stats.lua. ``counters``: all that follows."""

    scheduled: int
    ready: int
    running: int
    succeeded: int
    dead: int
    cancelled: int
    documents: int
    oldest_age: int
    paused: bytes
    counters: Sequence[bytes]

    @classmethod
    def of(cls, reply: Sequence[Any]) -> StatsParts:
        """Counters have no bound."""
        named = len(cls._fields) - 1
        return cls._make((*reply[:named], reply[named:]))


class StatisticsParts(NamedTuple):
    """See statistics.lua. ``points``: all that follows."""

    now: int
    first: int
    last: int
    tallies: bytes
    points: Sequence[Sequence[bytes | None]]

    @classmethod
    def of(cls, reply: Sequence[Any]) -> StatisticsParts:
        """There is one of them for each task."""
        named = len(cls._fields) - 1
        return cls._make((*reply[:named], reply[named:]))


REPLIES: dict[str, tuple[str, ...]] = {
    "exchange": ExchangeParts._fields,
    "gather": GatherParts._fields,
    "get_job": JobParts._fields,
    "prune": PruneParts._fields,
    "reap": ReapParts._fields,
    "renew": RenewParts._fields,
    "statistics": (*StatisticsParts._fields[:-1], "..."),
    "stats": (*StatsParts._fields[:-1], "..."),
}
"""Script to what its header names."""
