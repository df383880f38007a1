"""What every part of the memory model stands on: its queues, its clock, and who waits."""

from __future__ import annotations

import asyncio

from tidework.broker.acts import Act
from tidework.clock import Clock, SystemClock, to_ms
from tidework.model.identity import QueueName
from tidework.model.lease import (
    QueueLimits,
)
from tidework.testing.memory.state import QueueState


class MemoryCalls:
    """The queues of a MemoryBroker."""

    def __init__(self, clock: Clock | None = None, limits: QueueLimits | None = None) -> None:
        self._clock = clock or SystemClock()
        self._limits = limits or QueueLimits()
        self._queues: dict[QueueName, QueueState] = {}
        self._acts: dict[str, list[tuple[int, Act]]] = {}
        self._documents = asyncio.Condition()

    def _open(self, queue: QueueName) -> QueueState:
        state = self._queues.get(queue)
        if state is None:
            state = self._queues[queue] = QueueState(self._limits)
        state.now = to_ms(self._clock.now())
        return state

    async def _announce(self) -> None:
        async with self._documents:
            self._documents.notify_all()

    async def open_queue(self, queue: QueueName) -> None:
        self._open(queue)

    async def queues(self) -> tuple[QueueName, ...]:
        return tuple(sorted(self._queues))

    async def close(self) -> None:
        return None
