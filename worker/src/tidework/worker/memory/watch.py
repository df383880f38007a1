"""Memory watch: looks at what children that work hold, about once a second; every 4 s at rest.

That is their PSS, and the processes that ended below them and were not reaped: a child adopts
what its jobs leave behind, and cannot tell it from processes that a job means to wait for.
A look costs the kernel a walk over the child's page tables; looks are spaced so that they use no
more than about 1 % of a core. Idle children do not grow and are left alone.
"""

from __future__ import annotations

from datetime import timedelta

from tidework.clock import Clock
from tidework.loop import Loop
from tidework.worker.memory.usage import pss_bytes
from tidework.worker.places.slots import SlotPool
from tidework.worker.process import unreaped_children

EVERY, AT_REST = 1.0, 4.0
_SHARE = 0.01


class MemoryWatch:
    """Keeps ``pss`` and ``unreaped`` of links, has idle children recycled that hold too much."""

    def __init__(self, pool: SlotPool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._looked: dict[int, int] = {}
        self._rested = False
        self.loop = Loop("memory watch", self._tick)

    async def _tick(self) -> timedelta:
        if self._rested and self._pool.busy:
            self._rested = False  # the first job has only just come
            return timedelta(seconds=EVERY)
        began = self._clock.monotonic()
        looked: dict[int, int] = {}
        for link in self._pool.links():
            if link.pid is None:
                continue
            looked[link.key] = link.done
            if link.jobs or self._looked.get(link.key) != link.done:
                link.pss = pss_bytes(link.pid) or 0
                link.unreaped = unreaped_children(link.pid)
        self._looked = looked
        self._pool.recycle_idle()
        spent = self._clock.monotonic() - began
        rests = self._pool.rest_until_job(self.loop)
        self._rested = rests
        return timedelta(seconds=max(AT_REST if rests else EVERY, spent / _SHARE))
