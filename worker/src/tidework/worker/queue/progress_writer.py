"""What jobs say of themselves, on its way to their queue.

The last word of each job is kept until the queue has it, and written now and then, under the job's
lease. What a job said before it ended is written before its end is settled: whoever runs it next
goes on from there. While Redis is away jobs go on; what they say replaces what they have said.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tidework.backoff import Backoff
from tidework.broker.broker import Claims
from tidework.clock import Clock
from tidework.errors import BrokerError, BrokerRefusedError
from tidework.loop import Loop
from tidework.model.identity import QueueName
from tidework.model.lease import Settlement
from tidework.model.outcome import OutcomeKind
from tidework.model.progress import ProgressNote
from tidework.worker.held import HeldJob
from tidework.worker.queue.job_log import JobLog

EVERY = 0.5
"""Seconds between two writes."""
MOST = 100
"""Jobs in one write."""
_ENDS = frozenset({OutcomeKind.COMPLETE, OutcomeKind.CANCELLED})
"""Nothing stays of what such a job said."""


class ProgressWriter:
    """Writes what the jobs of one queue say of themselves."""

    def __init__(self, queue: QueueName, broker: Claims, job_log: JobLog, clock: Clock) -> None:
        self.loop = Loop(f"progress of {queue}", self._tick)
        self._queue = queue
        self._broker = broker
        self._job_log = job_log
        self._clock = clock
        # By lease: what this worker has lost and claimed again may still speak in its old run.
        self._unwritten: dict[tuple[str, str], HeldJob] = {}
        self._backoff = Backoff()
        self._next_at = 0.0

    def note(self, job: HeldJob) -> None:
        if not self._unwritten:
            self.loop.nudge()
        self._unwritten[job.id, job.claimed.token] = job

    async def write_last(self, settlements: Sequence[Settlement]) -> None:
        """These jobs are about to be settled. Raises BrokerUnavailableError."""
        last = []
        for found in settlements if self._unwritten else ():
            job = self._unwritten.get((found.id, found.token))
            if job is None:
                continue
            if found.outcome.kind in _ENDS:
                del self._unwritten[found.id, found.token]
            else:
                last.append(job)
        try:
            await self._write(last)
        except BrokerRefusedError as error:
            # Whatever is amiss must not keep the end of a job back: it does some items again.
            self._job_log.note_redis_error(error, "the last progress of jobs is lost")

    async def _tick(self) -> timedelta:
        wait = self._next_at - self._clock.monotonic()
        if not self._unwritten:
            return timedelta(hours=1)
        if wait > 0:
            return timedelta(seconds=wait)
        try:
            await self._write(list(self._unwritten.values()))
        except BrokerError as error:
            self._job_log.note_redis_error(error, "progress of jobs")
            delay = self._backoff.next()
            self._next_at = self._clock.monotonic() + delay.total_seconds()
            return delay
        self._backoff.reset()
        self._next_at = self._clock.monotonic() + EVERY
        return timedelta(0)

    async def _write(self, jobs: Sequence[HeldJob]) -> None:
        for first in range(0, len(jobs), MOST):
            await self._write_some(jobs[first : first + MOST])

    async def _write_some(self, jobs: Sequence[HeldJob]) -> None:
        notes = [
            ProgressNote(job.id, job.claimed.token, job.said, job.progress, job.positions)
            for job in jobs
        ]
        await self._broker.note_progress(self._queue, notes)
        # Those that were refused have lost their lease, which others tell.
        for job, note in zip(jobs, notes, strict=True):
            lease = job.id, job.claimed.token
            if self._unwritten.get(lease) is job and job.said == note.sequence:
                del self._unwritten[lease]
