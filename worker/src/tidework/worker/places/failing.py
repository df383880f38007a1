"""Failing: a child in which one job after the other fails at once is replaced.

What a job leaves behind inside its process (a client whose connection is broken, a module half
imported) cannot be seen from outside. Who fails at once is free at once, and would draw all jobs
of a queue and use up their attempts. The cause may as well be outside of the process: so that is
tried now and then only, ever more rarely.
"""

from __future__ import annotations

from tidework.clock import Clock
from tidework.model.outcome import OutcomeKind
from tidework.worker.frames import Ended
from tidework.worker.places.child_link import ChildLink

IN_A_ROW = 5
AT_ONCE = 0.1
"""Seconds: who fails later draws no more jobs than others."""
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 3600.0
"""Seconds between two replacements in a slot; doubled unless the new child did better."""

_FAILED = (OutcomeKind.RETRY, OutcomeKind.BURY)


class Failing:
    """Of one pool."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pauses: dict[int, tuple[float, float]] = {}

    def note(self, link: ChildLink, ended: Ended) -> None:
        """A job of the child has ended. It gets no more if too many failed in a row."""
        kind = ended.outcome.kind
        if kind is OutcomeKind.COMPLETE:
            link.failed = 0
        elif kind in _FAILED and ended.seconds <= AT_ONCE:
            link.failed += 1
            if link.failed >= IN_A_ROW and not link.worn:
                self._judge(link)

    def _judge(self, link: ChildLink) -> None:
        now = self._clock.monotonic()
        until, pause = self._pauses.get(link.slot, (0.0, 0.0))
        if now < until:
            return
        did_better = link.done > link.failed
        pause = FIRST_PAUSE if did_better or not pause else min(2 * pause, LONGEST_PAUSE)
        self._pauses[link.slot] = now + pause, pause
        link.worn = f"{link.failed} jobs failed in it at once, one after the other"
