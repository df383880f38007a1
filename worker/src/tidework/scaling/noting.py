"""Which decisions are kept for people to read: what changed something, and the reason of now.

A decision is made every second and mostly says what the one before said. So nothing is written
while a queue is at rest.
"""

from __future__ import annotations

from tidework.model.backlog import QueueLoad
from tidework.model.scaled import Scaled
from tidework.scaling.decision import Decision

REFRESH_S = 15.0
"""A reason with other numbers is written so often at most."""


class Noting:
    """Of one queue. ``now`` is that of a monotonic clock, seconds."""

    def __init__(self) -> None:
        self._last: Scaled | None = None
        self._at = 0.0

    def news(
        self, before: int, decision: Decision, load: QueueLoad | None, now: float
    ) -> Scaled | None:
        """What is to be written of a decision, None if it is nothing new.

        before: the replicas that were asked for until then
        """
        found = Scaled(
            before=before,
            replicas=decision.replicas,
            wanted=decision.wanted,
            reason=decision.reason,
            limits=tuple(limit.value for limit in decision.limits),
            backlog=None if load is None else load.backlog,
            running=None if load is None else load.in_flight,
        )
        last = self._last
        if last is None or self.is_step(found):
            return found
        is_old = now - self._at >= REFRESH_S
        return found if is_old and found.reason != last.reason else None

    def is_step(self, found: Scaled) -> bool:
        """Does it change the replicas, or what keeps them from what is wanted?"""
        last = self._last
        return found.before != found.replicas or (last is not None and last.limits != found.limits)

    def note(self, written: Scaled, now: float) -> None:
        """It is written."""
        self._last, self._at = written, now
