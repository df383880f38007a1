"""Heartbeat: what the worker says of itself, every 10 s, to each of its queues."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from tidework.broker.broker import Broker
from tidework.clock import Clock
from tidework.errors import BrokerError
from tidework.loop import Loop
from tidework.metrics import WorkerNumbers
from tidework.model.backlog import Presence
from tidework.model.identity import QueueName
from tidework.worker.backoff import Backoff
from tidework.worker.journal import Journal
from tidework.worker.slots import SlotPool
from tidework.worker.version import version

EVERY = timedelta(seconds=10)
TTL = timedelta(seconds=30)


class Heartbeat:
    """Keeps the worker's presence.

    draining, paused: asked for each document
    """

    def __init__(
        self,
        broker: Broker,
        incarnation: str,
        queues: Sequence[tuple[QueueName, Journal]],
        pool: SlotPool,
        numbers: WorkerNumbers,
        clock: Clock,
        draining: Callable[[], bool],
        paused: Callable[[], bool],
    ) -> None:
        self._broker = broker
        self._incarnation = incarnation
        self._queues = queues
        self._pool = pool
        self._numbers = numbers
        self._clock = clock
        self._draining = draining
        self._paused = paused
        self._started_at = clock.now()
        self._backoff = Backoff()
        self.loop = Loop("heartbeat", self._tick)

    async def _tick(self) -> timedelta:
        presence = Presence(self._incarnation, self._clock.now(), self.document())
        failed = False
        for queue, journal in self._queues:
            try:
                await self._broker.beat(queue, presence, ttl=TTL)
            except BrokerError as error:
                journal.note_redis_error(error, "heartbeat")
                failed = True
        if failed:
            return self._backoff.next()
        self._backoff.reset()
        self._numbers.last_heartbeat_at = self._clock.now().timestamp()
        return EVERY

    async def leave(self) -> None:
        """Be forgotten. Raises BrokerError."""
        for queue, _ in self._queues:
            await self._broker.leave(queue, self._incarnation)

    def document(self) -> Mapping[str, Any]:
        """Presence as JSON data; times are Unix seconds.

        jobs: what runs, with its slot and since when
        """
        numbers = self._numbers
        wall = self._clock.now().timestamp() - self._clock.monotonic()
        return {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "pod": os.environ.get("POD_NAME", ""),
            "node": os.environ.get("NODE_NAME", ""),
            "version": version(),
            "queues": [queue.name for queue, _ in self._queues],
            "started_at": self._started_at.timestamp(),
            "last_job_at": numbers.last_job_at,
            "processed": numbers.total("succeeded") + numbers.total("failed"),
            "failed": numbers.total("failed"),
            "slots": numbers.slots,
            "busy": self._pool.busy,
            "draining": self._draining(),
            "paused": self._paused(),
            "jobs": [
                {
                    "slot": slot.index,
                    "id": job.id,
                    "task": job.task,
                    "queue": self._queues[job.source.index][0].name,
                    "since": wall + job.started_at,
                }
                for slot in self._pool.slots
                if slot.link is not None
                for job in list(slot.link.jobs)[:1]
                if job.started_at is not None
            ],
        }
