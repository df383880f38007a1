"""Counters are sums of transitions: what each of them has to be, told from the queue itself.

A job comes by an enqueue or as a refused document, and goes by pruning, by a purge, or as a
document that was replayed into the inbox:

    enqueued + rejected = jobs + pruned + purged + documents replayed

It ends, and leaves its end behind by pruning, by a purge, or by a replay:

    succeeded + dead + cancelled = ended jobs + pruned + purged + replayed

A claim is under way, settled, or reaped:

    claimed = leases + settled + reaped

Two of these no counter tells, the test has to: documents replayed, and settled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.stored_queue import ENDED, StoredQueue
from tidework.broker.answers import ReplayAnswer
from tidework.model.lease import ExchangeReply, ExchangeRequest
from tidework.testing.memory.state import QueueState


@dataclass(slots=True)
class Tally:
    """What the requests so far must have done, by their answers."""

    documents_replayed: int = 0
    settled: int = 0
    _raw: set[str] = field(default_factory=set)
    _is_new: bool = False

    def before(self, method: str, args: Sequence[Any], state: QueueState) -> None:
        """Note what a request meets."""
        if method == "replay":
            self._raw = {e.id for e in state.entries.values() if e.raw}
        elif method == "exchange":
            request: ExchangeRequest = args[0]
            last = state.replies.get((request.incarnation, request.most_held is not None))
            self._is_new = last is None or request.sequence > last[0]

    def after(self, method: str, args: Sequence[Any], answer: Any) -> None:
        """Count what it did."""
        if method == "replay":
            for job_id, found in zip(args[0], answer, strict=True):
                if found is ReplayAnswer.REPLAYED:
                    self.documents_replayed += job_id in self._raw
        elif isinstance(answer, ExchangeReply) and self._is_new:
            self.settled += len(args[0].settlements) - len(answer.refused)


def find_wrong_sums(stored: StoredQueue, tally: Tally) -> list[str]:
    """Each sum that does not hold, in words."""
    return list(_sums(stored, tally))


def _sums(stored: StoredQueue, tally: Tally) -> Iterator[str]:
    def total(*names: str) -> int:
        return sum(stored.counters.get(name, 0) for name in names)

    gone = total("pruned", "purged")
    ended = sum(len(getattr(stored, part)) for part in ENDED)
    came = total("enqueued", "rejected")
    if came != len(stored.jobs) + gone + tally.documents_replayed:
        yield f"{came} jobs came, {len(stored.jobs)} are there, {gone} went: {stored.counters}"
    ends = total(*ENDED)
    if ends != ended + gone + total("replayed"):
        yield f"{ends} ends, {ended} ended jobs, {gone} went: {stored.counters}"
    claimed = total("claimed")
    if claimed != len(stored.leases) + tally.settled + total("reaped"):
        yield f"{claimed} claims, {len(stored.leases)} leases, {tally.settled} settled"
