"""Solitary children: async jobs that were lost before run in one each, on places of the loop.

Such a child is forked for one job, runs it on an event loop with a single place, as the loop of
all others would, and ends with it: nothing that the job leaves behind meets another one.
The job lies in the pipe from the order on, with a permit: until the child has begun it, it can be
taken back. How many there are at once is bounded, more so where memory is short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tidework.clock import Clock
from tidework.worker.held import JobSource, Line
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.start_pause import start_pause
from tidework.worker.places.turns import Turns, any_job

MOST = 32
"""Solitary children of a worker at once; each is a process."""
CHILD_BYTES = 16 << 20
"""What one may need besides what it shares with others, before its job has asked for anything."""


def most_solitary(async_slots: int) -> int:
    """How many a worker with so many places for async jobs may have at once."""
    return min(async_slots, MOST)


class SolitaryChildren:
    """Of one pool.

    links:   those that have not ended
    order:   orders a child and returns its link; None if that cannot be done now
    run:     to be called when more may be started
    """

    def __init__(
        self,
        places: int,
        sources: Sequence[JobSource],
        clock: Clock,
        order: Callable[[], ChildLink | None],
        run: Callable[[], None],
    ) -> None:
        self.links: list[ChildLink] = []
        self.turns = Turns(sources, Line.SOLITARY)
        self._most = most_solitary(places)
        self._memory_for: int | None = None
        self._clock = clock
        self._order = order
        self._run = run
        self._unready = 0
        self._paused_until = 0.0

    @property
    def jobs(self) -> int:
        """How many are in children."""
        # Also asked from the thread of the probes.
        return sum(len(link.jobs) for link in list(self.links))

    @property
    def is_needed(self) -> bool:
        """Are there such jobs, in a child or waiting?"""
        return bool(self.links) or self.turns.first() is not None

    def feed(self, room: int) -> None:
        """Start children for up to ``room`` waiting jobs."""
        while room > 0 and self._may_start() and self.turns.first() is not None:
            link = self._order()
            if link is None:
                return
            self.links.append(link)
            if self._memory_for is not None:
                self._memory_for = max(0, self._memory_for - 1)
            link.send(self.turns.take(1, any_job), self._clock.monotonic())
            room -= 1

    def _may_start(self) -> bool:
        if self._clock.monotonic() < self._paused_until or len(self.links) >= self._most:
            return False
        # One at a time goes on whatever the memory: it may be what frees it.
        return not self.links or self._memory_for is None or self._memory_for > 0

    def note_memory(self, free: float) -> None:
        """So many bytes are left before memory gets scarce; negative: it is."""
        had, self._memory_for = self._memory_for, max(0, int(free // CHILD_BYTES))
        if had == 0 and self._memory_for and self.turns.first() is not None:
            self._run()

    def forget(self, link: ChildLink) -> None:
        """It has ended, if it was one of these."""
        if link not in self.links:
            return
        self.links.remove(link)
        if link.ready or link.retired_at is not None:
            self._unready = 0
            return
        # Another would hardly fare better at once.
        pause = start_pause(self._unready)
        self._unready += 1
        self._paused_until = self._clock.monotonic() + pause
        asyncio.get_running_loop().call_later(pause, self._run)
