"""Heartbeat: the worker's sign of life, every 10 s, to each of its queues.

It also brings what people ask of the worker: a request for its stacks, which is told by the answer
to a beat (or by a renewal, which has the next beat come at once), is answered with another one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from tidework.backoff import Backoff
from tidework.broker.broker import Claims
from tidework.clock import Clock
from tidework.errors import BrokerError
from tidework.loop import Loop
from tidework.metrics import WorkerNumbers
from tidework.model.backlog import Presence, StacksAnswer
from tidework.model.identity import QueueName
from tidework.model.lease import QueueLimits
from tidework.worker.queue.job_log import JobLog

EVERY = timedelta(seconds=10)
KEEP = QueueLimits().keep_presence
"""A worker that was not seen for so long is forgotten, whichever worker beats."""


class Reports(Protocol):
    """Who makes reports of stacks."""

    latest: Mapping[str, Any] | None
    on_ready: Callable[[], None]

    def ask(self) -> None:
        """Have one made."""


class Heartbeat:
    """Keeps the worker's presence.

    document: what it says, asked for each beat
    reports:  stacks for whoever asks
    announce: called after each beat of a queue; raises BrokerError
    """

    def __init__(
        self,
        broker: Claims,
        incarnation: str,
        queues: Sequence[tuple[QueueName, JobLog]],
        document: Callable[[], Mapping[str, Any]],
        reports: Reports,
        numbers: WorkerNumbers,
        clock: Clock,
        announce: Callable[[QueueName], Awaitable[None]] | None = None,
    ) -> None:
        self._broker = broker
        self._incarnation = incarnation
        self._queues = queues
        self._document = document
        self._reports = reports
        self._numbers = numbers
        self._clock = clock
        self._announce = announce
        self._asked: dict[QueueName, int] = {}
        self._answers: dict[QueueName, StacksAnswer] = {}
        self._backoff = Backoff()
        self.loop = Loop("heartbeat", self._tick)
        reports.on_ready = self._on_report

    async def _tick(self) -> timedelta:
        presence = Presence(self._incarnation, self._clock.now(), self._document())
        failed = False
        for queue, job_log in self._queues:
            try:
                await self._beat(queue, presence)
                if self._announce is not None:
                    await self._announce(queue)
            except BrokerError as error:
                job_log.note_redis_error(error, "heartbeat")
                failed = True
            else:
                job_log.note_redis_answer()
        if failed:
            return self._backoff.next()
        self._backoff.reset()
        self._numbers.last_heartbeat_at = self._clock.now().timestamp()
        return EVERY

    async def _beat(self, queue: QueueName, presence: Presence) -> None:
        answer = self._answers.get(queue)
        asked = await self._broker.beat(queue, presence, ttl=KEEP, stacks=answer)
        # An answer is sent until it has certainly arrived; meanwhile there may be another one.
        if answer is not None and self._answers.get(queue) is answer:
            del self._answers[queue]
        if asked and self._asked.get(queue, 0) < asked:
            self._asked[queue] = asked
            self._reports.ask()

    def _on_report(self) -> None:
        report = self._reports.latest
        if report is not None and self._asked:
            self._answers |= {q: StacksAnswer(n, report) for q, n in self._asked.items()}
            self._asked.clear()
            self.loop.nudge()

    async def leave(self) -> None:
        """Be forgotten. Raises BrokerError."""
        for queue, _ in self._queues:
            await self._broker.leave(queue, self._incarnation)
