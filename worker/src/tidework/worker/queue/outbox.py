"""Outcomes on their way to the next exchange, service times that go along, and that exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidework.model.lease import ExchangeRequest, RunTimes, Settlement
from tidework.model.statistics import bucket_of
from tidework.worker.places.claims import Grant

SETTLE_WITHIN = 0.01
"""Seconds that an outcome waits for others while no slot waits for it."""


@dataclass(slots=True)
class UnderWay:
    """An exchange that was not answered yet; ``grant``: room that is kept for what it claims."""

    request: ExchangeRequest
    grant: Grant
    resend_at: float = 0.0


@dataclass(slots=True)
class _Ran:
    """Attempts of a task that ended since the last exchange."""

    seconds: float = 0.0
    buckets: dict[int, int] = field(default_factory=dict)


class Outbox:
    """Outcomes of one queue that go with its next exchange; times are monotonic seconds."""

    def __init__(self) -> None:
        self._settlements: list[Settlement] = []
        self._served: dict[str, _Ran] = {}
        self._at = 0.0

    def __len__(self) -> int:
        return len(self._settlements)

    def add(self, settlement: Settlement, now: float) -> bool:
        """Take it in. True if it is the first: somebody has to look when it is due."""
        is_first = not self._settlements
        if is_first:
            self._at = now + SETTLE_WITHIN
        self._settlements.append(settlement)
        return is_first

    def note_served(self, task: str, seconds: float) -> None:
        """An attempt ran for ``seconds``."""
        ran = self._served.get(task)
        if ran is None:
            ran = self._served[task] = _Ran()
        ran.seconds += seconds
        bucket = bucket_of(seconds)
        ran.buckets[bucket] = ran.buckets.get(bucket, 0) + 1

    def hurry(self) -> None:
        """What is in it waits no longer."""
        self._at = 0.0

    def due_at(self) -> float | None:
        """When to settle; None = nothing is in it."""
        return self._at if self._settlements else None

    def take(self, most: int) -> tuple[tuple[Settlement, ...], Mapping[str, RunTimes]]:
        """Outcomes, and task -> attempts that ran."""
        taken = tuple(self._settlements[:most])
        served = {
            task: RunTimes(sum(ran.buckets.values()), ran.seconds, ran.buckets)
            for task, ran in self._served.items()
        }
        del self._settlements[:most]
        self._served = {}
        return taken, served

    def put_back(self, settlements: Sequence[Settlement]) -> None:
        """They were not settled after all."""
        self._settlements[:0] = settlements
