"""When to look at which CronTask next, so that a bounded number is looked at in a round.

What its author changed goes before what only time changed: in a crowd of CronTasks that fire at
the same second nobody waits for the crowd to see what came of an edit.
"""

from __future__ import annotations

from collections.abc import Collection


class Lookout:
    """Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._at: dict[str, tuple[bool, float]] = {}  # uid -> (is routine, when)

    def urge(self, uid: str, at: float) -> None:
        """Look at it from ``at`` on, before everything that is routine."""
        self._at[uid] = (False, at)

    def plan(self, uid: str, at: float) -> None:
        """Look at it from ``at`` on."""
        self._at[uid] = (True, at)

    def keep(self, uids: Collection[str]) -> None:
        """Forget all others."""
        self._at = {uid: when for uid, when in self._at.items() if uid in uids}

    def take(self, now: float, limit: int) -> list[str]:
        """At most ``limit`` that are to be looked at now, the urgent and the oldest first.

        Each leaves the list until it is planned anew.
        """
        due = [(*when, uid) for uid, when in self._at.items() if when[1] <= now]
        taken = [uid for *_, uid in sorted(due)[:limit]]
        for uid in taken:
            del self._at[uid]
        return taken
