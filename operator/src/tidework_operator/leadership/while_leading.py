"""While leading: what only the leader does, begun anew with every lead.

A part of an earlier lead may remember what another leader has changed since; so each lead makes
its own. Counts rounds for the metrics, and keeps a part that is nudged by every change from doing
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tidework.clock import Clock
from tidework.errors import BrokerError
from tidework.scheduler.service import Ticker
from tidework_operator.cluster import ClusterError
from tidework_operator.leadership.election import Election

TROUBLE = (BrokerError, ClusterError)
"""What a round may raise; its Loop goes on."""

_STANDBY = timedelta(seconds=1)
_GAP = timedelta(seconds=0.25)


class WhileLeading:
    """``tick`` is for a Loop; nudge it when the lead changes.

    make:     makes the part at the begin of a lead
    is_ready: may it work yet?
    gap:      from the end of a round to the begin of the next at least; and at least as long as
              the round took
    """

    def __init__(
        self,
        election: Election,
        clock: Clock,
        make: Callable[[], Ticker],
        *,
        is_ready: Callable[[], bool],
        gap: timedelta = _GAP,
    ) -> None:
        self.rounds = 0
        self.failures = 0
        self.seconds = 0.0
        self._election = election
        self._clock = clock
        self._make = make
        self._is_ready = is_ready
        self._gap = gap.total_seconds()
        self._part: Ticker | None = None
        self._tenure = 0
        self._fresh = 0
        self._rest_until = 0.0

    @property
    def is_fresh(self) -> bool:
        """Did a round succeed in the present lead?"""
        return self._election.leading and self._fresh == self._election.tenure

    async def tick(self) -> timedelta:
        """One round if we lead; the wait until the next. Raises what the part raises."""
        election = self._election
        if not election.leading or not self._is_ready():
            self._part = None
            return _STANDBY
        began = self._clock.monotonic()
        if began < self._rest_until:
            return timedelta(seconds=self._rest_until - began)
        if self._part is None or self._tenure != election.tenure:
            self._part, self._tenure = self._make(), election.tenure
        tenure = self._tenure
        try:
            wait = await self._part.tick()
        except TROUBLE:
            self.failures += 1
            raise
        finally:
            took = self._clock.monotonic() - began
            self.seconds += took
            self._rest_until = began + took + max(self._gap, took)
        self.rounds += 1
        self._fresh = tenure
        return wait
