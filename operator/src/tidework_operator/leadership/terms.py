"""Terms: the lead of the Lease turned into a term per queue, raised in the queue's own Redis.

Invariants: a queue without a term of ours is not served; what is written under a term that was
raised by another is refused by Redis itself. After a refusal a term is raised again only once the
API server has confirmed the lead: of two who believe to lead, one gives way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import timedelta

from tidework.broker.broker import Leadership
from tidework.errors import BrokerError
from tidework.logs import queue_fields
from tidework.model.identity import QueueName
from tidework.scheduler.each import for_each
from tidework_operator.leadership.election import Election
from tidework_operator.patience import USUAL, Patience

logger = logging.getLogger(__name__)

TERMS_EVERY = timedelta(seconds=1)

_AT_ONCE = 64


class ClusterLeadership:
    """A term over each queue while we lead. Implements Terms of tidework.scheduler.leadership.

    queues:    those to lead, asked for in every tick
    on_change: called after a term was won or lost
    on_refuse: called after a write was refused: the Lease should be looked at

    ``tick`` is for a Loop of its own, so that a slow Redis keeps nobody from renewing the Lease.
    """

    def __init__(
        self,
        election: Election,
        broker: Leadership,
        queues: Callable[[], Collection[QueueName]],
        *,
        on_change: Callable[[], None] = lambda: None,
        on_refuse: Callable[[], None] = lambda: None,
        patience: Patience = USUAL,
    ) -> None:
        self.refusals = 0
        self._election = election
        self._broker = broker
        self._queues = queues
        self._on_change = on_change
        self._on_refuse = on_refuse
        self._raise_within = patience.raise_term
        self._tenure = 0
        self._terms: dict[QueueName, int] = {}
        self._refused_at: dict[QueueName, int] = {}
        self._troubled: set[QueueName] = set()

    def term(self, queue: QueueName) -> int | None:
        return self._terms.get(queue) if self._is_current() else None

    @property
    def led(self) -> frozenset[QueueName]:
        """The queues over which we hold a term."""
        return frozenset(self._terms) if self._is_current() else frozenset()

    def refuse(self, queue: QueueName, term: int) -> None:
        self.refusals += 1
        if self._terms.get(queue) != term:
            return
        del self._terms[queue]
        self._refused_at[queue] = self._election.confirmed
        extra = {"event": "lead_lost", **queue_fields(queue), "term": term}
        logger.warning(
            "queue %s: term %d was refused, somebody else leads it", queue, term, extra=extra
        )
        self._on_change()
        self._on_refuse()

    def forget(self, queue: QueueName) -> None:
        """Our term over the queue is worth nothing any more: raise a new one."""
        if self._terms.pop(queue, None) is not None:
            self._on_change()

    async def tick(self) -> timedelta:
        """Raise the term of every queue that lacks one; the wait until the next look.

        A queue whose Redis does not answer is tried again; its former leader may go on.
        """
        if not self._is_current():
            self._terms.clear()
            self._refused_at.clear()
            self._tenure = self._election.tenure
        if not self._election.leading:
            return TERMS_EVERY
        queues = frozenset(self._queues())
        for queue in self._terms.keys() - queues:
            del self._terms[queue]
        self._troubled &= queues
        lacking = [queue for queue in queues if self._may_raise(queue)]
        # Those in trouble come last: they may keep us waiting.
        lacking.sort(key=lambda queue: (queue in self._troubled, queue))
        await for_each(lacking, self._raise, at_once=_AT_ONCE)
        return TERMS_EVERY

    def _is_current(self) -> bool:
        return self._election.leading and self._election.tenure == self._tenure

    def _may_raise(self, queue: QueueName) -> bool:
        if queue in self._terms:
            return False
        refused_at = self._refused_at.get(queue)
        return refused_at is None or self._election.confirmed > refused_at

    async def _raise(self, queue: QueueName) -> None:
        tenure = self._election.tenure
        try:
            async with asyncio.timeout(self._raise_within.total_seconds()):
                await self._broker.open_queue(queue)
                term = await self._broker.take_term(queue)
        except BrokerError as error:
            self._note_trouble(queue, str(error))
            return
        except TimeoutError:
            # If it was raised all the same, it will be raised once more.
            self._note_trouble(queue, "Redis does not answer in time")
            return
        self._troubled.discard(queue)
        if not self._election.leading or self._election.tenure != tenure:
            # The lead was lost meanwhile; whoever has it now raises the term beyond this one.
            return
        self._terms[queue] = term
        self._refused_at.pop(queue, None)
        logger.info(
            "leads queue %s",
            queue,
            extra={"event": "queue_led", **queue_fields(queue), "term": term},
        )
        self._on_change()

    def _note_trouble(self, queue: QueueName, why: str) -> None:
        if queue not in self._troubled:
            self._troubled.add(queue)
            extra = {"event": "queue_not_led", **queue_fields(queue)}
            logger.warning("queue %s is not led yet: %s", queue, why, extra=extra)
