"""Once a second, for every queue: promote due jobs, reap expired leases, prune past retention, and
take in documents that lie in the inbox and are taken by nobody.

Workers do the same in each of their exchanges; this is for the queues that have no worker just
now: a document that is due in a week needs none until then, and one that is no job never does.
Each call does a bounded number of jobs; a queue in trouble does not keep the others waiting.
Dead letters are bounded in number: it says so before the bound is reached, and whenever some had
to go for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta

from tidework.broker.answers import UpkeepReply
from tidework.broker.broker import Leadership
from tidework.clock import SystemClock
from tidework.errors import BrokerError
from tidework.intake import Intake
from tidework.logs import queue_fields
from tidework.model.identity import QueueName

logger = logging.getLogger(__name__)

EVERY = timedelta(seconds=1)
_AT_ONCE = 8

# A call that moved so many jobs probably left some behind: come back at once.
_MUCH = 100
_SOON = timedelta(milliseconds=20)
SWEEP_EVERY = timedelta(seconds=4)
"""Between two sweeps of a queue: whoever validates a document needs less, or is dead."""

DEAD_ALARM = 0.9
"""Share of the bound from which on the number of dead letters raises the alarm."""


@dataclass(slots=True)
class UpkeepCounters:
    """Sums since the start; ``failures`` counts calls that Redis did not answer."""

    rounds: int = 0
    promoted: int = 0
    reaped: int = 0
    buried: int = 0
    pruned: int = 0
    dead_dropped: int = 0
    taken_in: int = 0
    failures: int = 0

    def add(self, reply: UpkeepReply) -> None:
        """Count what one call moved."""
        self.promoted += reply.promoted
        self.reaped += reply.reaped
        self.buried += reply.buried
        self.pruned += reply.pruned


@dataclass(slots=True)
class _Inbox:
    """One that somebody has left documents in."""

    intake: Intake
    sweep_at: float = 0.0
    troubled: bool = False


class Upkeep:
    """``tick`` is for a Loop. ``queues`` is asked in every tick which queues to keep."""

    def __init__(
        self,
        broker: Leadership,
        queues: Callable[[], Collection[QueueName]],
        *,
        sweep_every: timedelta = SWEEP_EVERY,
    ) -> None:
        self.counters = UpkeepCounters()
        self._broker = broker
        self._queues = queues
        self._sweep_s = sweep_every.total_seconds()
        self._troubled: set[QueueName] = set()
        self._alarmed: set[QueueName] = set()
        self._dropped: dict[QueueName, int] = {}
        self._inboxes: dict[QueueName, _Inbox] = {}

    async def tick(self) -> timedelta:
        """One call per queue; the wait to the next round."""
        waiting = iter([*self._queues()])
        much = False

        async def take_turns() -> None:
            nonlocal much
            for queue in waiting:
                reply = await self._keep(queue)
                if reply is not None:
                    taken = await self._take_in(queue, reply.documents)
                    most = max(reply.promoted, reply.reaped, reply.pruned, taken)
                    much = much or most >= _MUCH

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(take_turns())
        self.counters.rounds += 1
        return _SOON if much else EVERY

    async def _keep(self, queue: QueueName) -> UpkeepReply | None:
        try:
            reply = await self._broker.upkeep(queue)
        except BrokerError as error:
            self.counters.failures += 1
            if queue not in self._troubled:
                self._troubled.add(queue)
                logger.warning(
                    "no upkeep of queue %s: %s",
                    queue,
                    error,
                    extra={"event": "upkeep_failed", **queue_fields(queue)},
                )
            return None
        if queue in self._troubled:
            self._troubled.discard(queue)
            logger.info(
                "upkeep of queue %s goes on",
                queue,
                extra={"event": "upkeep_back", **queue_fields(queue)},
            )
        self.counters.add(reply)
        self._watch_dead(queue, reply)
        if reply.reaped or reply.buried:
            logger.warning(
                "queue %s: %d lost jobs run again, %d are dead letters",
                queue,
                reply.reaped,
                reply.buried,
                extra={"event": "leases_reaped", **queue_fields(queue)},
            )
        return reply

    async def _take_in(self, queue: QueueName, documents: int) -> int:
        """Take in a batch of documents that lay there a round ago as well; how many became jobs."""
        if not documents:
            self._inboxes.pop(queue, None)
            return 0
        inbox = self._inboxes.get(queue)
        if inbox is None:
            self._inboxes[queue] = _Inbox(Intake(self._broker, queue, SystemClock()))
            return 0
        try:
            taken = (await inbox.intake.take_some()).jobs
            now = asyncio.get_running_loop().time()
            if now >= inbox.sweep_at:
                inbox.sweep_at = now + self._sweep_s
                taken += (await inbox.intake.sweep()).jobs
        except BrokerError as error:
            if not inbox.troubled:
                inbox.troubled = True
                text = "documents of queue %s are not taken in: %s"
                logger.warning(
                    text, queue, error, extra={"event": "intake_failed", **queue_fields(queue)}
                )
            return 0
        inbox.troubled = False
        self.counters.taken_in += taken
        return taken

    def _watch_dead(self, queue: QueueName, reply: UpkeepReply) -> None:
        """Sound the alarm once when they become many, and for each batch that was dropped."""
        dropped = reply.dead_dropped - self._dropped.get(queue, reply.dead_dropped)
        self._dropped[queue] = reply.dead_dropped
        self.counters.dead_dropped += dropped
        if dropped > 0:
            logger.error(
                "queue %s: %d dead letters were dropped to keep no more than %d: replay or purge "
                "them, or raise the queue's bound",
                queue,
                dropped,
                reply.dead_limit,
                extra={"event": "dead_letters_dropped", **queue_fields(queue)},
            )
        if not 0 < reply.dead_limit * DEAD_ALARM <= reply.dead:
            self._alarmed.discard(queue)
        elif queue not in self._alarmed:
            self._alarmed.add(queue)
            logger.warning(
                "queue %s has %d dead letters and keeps %d at most, then the oldest are dropped: "
                "replay or purge them",
                queue,
                reply.dead,
                reply.dead_limit,
                extra={"event": "dead_letters_many", **queue_fields(queue)},
            )
