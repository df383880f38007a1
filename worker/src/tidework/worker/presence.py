"""Presence: what the worker says of itself to whoever looks at its queues, as JSON data.

Bounded, whatever the worker holds, and cheap: it is made with every beat.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from tidework.clock import Clock
from tidework.metrics import WorkerNumbers
from tidework.model.identity import QueueName
from tidework.worker.health import WorkerHealth
from tidework.worker.held import HeldJob
from tidework.worker.places.slots import SlotPool
from tidework.worker.queue.consumer import Consumer
from tidework.worker.version import version

MOST_JOBS = 100
"""Running jobs that are named; the oldest ones, since those are asked about."""
ANSWERS = ("stacks",)
"""Requests from outside that this version answers."""


class WorkerPresence:
    """Tells of one worker."""

    def __init__(
        self,
        queues: Sequence[QueueName],
        pool: SlotPool,
        consumers: Sequence[Consumer],
        health: WorkerHealth,
        numbers: WorkerNumbers,
        clock: Clock,
    ) -> None:
        self._queues = [queue.name for queue in queues]
        self._pool = pool
        self._consumers = consumers
        self._health = health
        self._numbers = numbers
        self._clock = clock
        self._started_at = clock.now()

    def document(self) -> Mapping[str, Any]:
        """Times are Unix seconds; docs/wire-format.md says what the fields mean."""
        numbers, pool = self._numbers, self._pool
        wall = self._clock.now().timestamp() - self._clock.monotonic()
        jobs = self._running()
        return {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "pod": os.environ.get("POD_NAME", ""),
            "node": os.environ.get("NODE_NAME", ""),
            "version": version(),
            "queues": self._queues,
            "started_at": self._started_at.timestamp(),
            "last_job_at": numbers.last_job_at and wall + numbers.last_job_at,
            "processed": numbers.total("succeeded") + numbers.total("failed"),
            "failed": numbers.total("failed"),
            "slots": numbers.slots,
            "async_slots": numbers.slots if pool.has_loop else 0,
            "busy": pool.busy,
            "draining": self._health.draining,
            "cordoned": any(consumer.cordoned for consumer in self._consumers),
            "paused": any(consumer.paused for consumer in self._consumers),
            "answers": ANSWERS,
            "jobs": [
                {
                    "slot": slot,
                    "child": child,
                    "id": job.id,
                    "task": job.task,
                    "queue": self._queues[job.source.index],
                    "attempt": job.claimed.attempt,
                    "since": wall + started_at,
                    **_progress(job),
                }
                for started_at, slot, child, job in jobs[:MOST_JOBS]
            ],
            "jobs_left_out": max(0, len(jobs) - MOST_JOBS),
        }

    def _running(self) -> list[tuple[float, int, int | None, HeldJob]]:
        """Start, slot, pid and job of all that run, the oldest first."""
        found = [
            (job.started_at, link.slot, link.pid, job)
            for link in self._pool.links()
            for job in link.jobs.values()
            if job.started_at is not None
        ]
        return sorted(found, key=lambda each: each[:2])


def _progress(job: HeldJob) -> Mapping[str, Any]:
    """What the job said last, if anything."""
    if not job.progress:
        return {}
    done, total, note = json.loads(job.progress)
    return {"progress": {"done": done, "total": total, "note": note}}
