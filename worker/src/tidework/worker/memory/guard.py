"""Memory guard: ends the largest child before the kernel ends the whole container.

Whether a job is to blame is told by growth: the child that is ended has lost its jobs if no other
grew more of late. One that was only large has them released, uncounted.
Nobody is ended where that does not help: what all children hold is less than what is too much.
Solitary children are not started into what is short.
A look costs a read of one small file. The less is free, the more often, so that a job which takes
1 GiB a second is met in time; what it costs is bounded. While no job runs it rests.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from tidework.clock import Clock
from tidework.loop import Loop
from tidework.worker.held import StopReason
from tidework.worker.memory.gauge import Gauge
from tidework.worker.memory.usage import MIB, family_bytes
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.slots import SlotPool

SCARCE = 0.7
"""Share of the limit from which the sizes of children are written down."""
_RATE = 1024 * MIB
"""Bytes a second that a job may take and still be met in time."""
_OFTEN, _SELDOM, _AT_REST = 0.05, 1.0, 4.0
_COST, _COST_WHEN_SCARCE = 0.002, 0.1
"""Share of a core for looks; scarce: and jobs run."""

logger = logging.getLogger(__name__)


class MemoryGuard:
    """Of one pool.

    most: share of the gauge's limit from which the largest child is ended
    """

    def __init__(self, pool: SlotPool, gauge: Gauge, most: float, clock: Clock) -> None:
        self._pool = pool
        self._gauge = gauge
        self._most = most * gauge.limit
        self._scarce = min(SCARCE, most) * gauge.limit
        self._clock = clock
        self._growth = _Growth()
        self._is_told = False
        self.loop = Loop("memory guard", self._tick)

    async def _tick(self) -> timedelta:
        began = self._clock.monotonic()
        used = self._gauge.used(int(self._scarce)) or 0
        self._pool.note_memory(self._scarce - used)
        spent = self._clock.monotonic() - began
        if used < self._scarce:
            self._growth = _Growth()
            self._is_told = False
        # While one is going it is not seen yet what it leaves free.
        elif not any(link.killed_at is not None for link in self._pool.links()):
            self._act(used, began)
        headroom = max(0.0, self._most - used) / _RATE
        is_urgent = used >= self._scarce and any(link.jobs for link in self._pool.links())
        pause = spent / (_COST_WHEN_SCARCE if is_urgent else _COST)
        seconds = min(max(_OFTEN, headroom, pause), _SELDOM)
        if used < self._scarce and self._pool.rest_until_job(self.loop):
            seconds = _AT_REST
        return timedelta(seconds=seconds)

    def _act(self, used: int, now: float) -> None:
        links = [link for link in self._pool.links() if link.pid is not None]
        if used >= self._most:
            # A child that has done nothing yet would only be replaced by its like.
            able = [link for link in links if link.jobs or link.has_served]
            self._end_largest([link for link in able if link.retired_at is None], used, now)
        elif self._growth.is_due(now):
            self._growth.note(_sizes(links), now)

    def _end_largest(self, links: list[ChildLink], used: int, now: float) -> None:
        sizes = _sizes(links)
        largest = max(links, key=lambda link: sizes[link.key], default=None)
        if largest is None:
            return
        if used - sum(sizes.values()) >= self._most:
            self._tell_in_vain(used, sum(sizes.values()))
            return
        grown = self._growth.of(sizes, {link.key: link.pss for link in links})
        to_blame = grown[largest.key] == max(grown.values())
        worker = f"{used >> 20} of {self._gauge.limit >> 20} MiB"
        largest.why = f"it held {sizes[largest.key] >> 20} MiB when {worker} were in use"
        largest.kill(StopReason.MEMORY if to_blame else StopReason.ROOM, None, now)
        extra = {"event": "memory_short", "slot": largest.slot, "child": largest.pid}
        logger.warning("memory is short, the largest child is ended: %s", largest.why, extra=extra)

    def _tell_in_vain(self, used: int, held: int) -> None:
        if not self._is_told:
            self._is_told = True
            logger.error(
                "memory is short, %d of %d MiB are in use, but all children that could be ended "
                "hold %d MiB: look for other users of memory (files as in /dev/shm, other "
                "programs, the application itself), or raise the limit",
                *(used >> 20, self._gauge.limit >> 20, held >> 20),
                extra={"event": "memory_short"},
            )


class _Growth:
    """What children have grown by in the last 10 to 20 s, by key; new ones by all that they are."""

    WINDOW = 10.0

    def __init__(self) -> None:
        self._older: Mapping[int, int] = {}
        self._newer: Mapping[int, int] = {}
        self._noted_at: float | None = None

    def is_due(self, now: float) -> bool:
        """Have the sizes to be noted again?"""
        return self._noted_at is None or now >= self._noted_at + self.WINDOW

    def note(self, sizes: Mapping[int, int], now: float) -> None:
        """Bytes, by key."""
        self._older, self._newer = self._newer or sizes, sizes
        self._noted_at = now

    def of(self, sizes: Mapping[int, int], seen: Mapping[int, int]) -> dict[int, int]:
        """Bytes, since the last but one note; without any since they were ``seen``."""
        before = self._older if self._noted_at is not None else seen
        return {key: size - before.get(key, 0) for key, size in sizes.items()}


def _sizes(links: list[ChildLink]) -> dict[int, int]:
    return {link.key: family_bytes(link.pid) for link in links if link.pid is not None}
