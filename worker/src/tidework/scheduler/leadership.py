"""Who may fire: one leader per queue, and the term that fences its writes.

Safety never rests on this module: a leader that was frozen and believes to lead still is refused
by the term in every write. This only chooses who should try. Terms have two sources: here a key
with expiry beside the queue; on a cluster a Kubernetes Lease.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Protocol

from tidework.broker.broker import Leadership
from tidework.errors import BrokerError, BrokerUnavailableError
from tidework.logs import queue_fields
from tidework.model.identity import QueueName
from tidework.scheduler.each import for_each

logger = logging.getLogger(__name__)

TTL = timedelta(seconds=6)
RENEW_EVERY = timedelta(seconds=2)
_AT_ONCE = 8


class Terms(Protocol):
    """What the scheduler asks of a leadership, whatever it rests on."""

    def term(self, queue: QueueName) -> int | None:
        """Our term over the queue; None while another leads it, or nobody does."""

    def refuse(self, queue: QueueName, term: int) -> None:
        """A write under ``term`` was refused as stale: it is not ours any more."""


class QueueLeadership:
    """Leadership without Kubernetes; ``tick`` is for a Loop of its own.

    queues:    those to lead, looked at in every tick
    holder:    names this process and this life of it
    on_change: called after a term was won or lost
    """

    def __init__(
        self,
        broker: Leadership,
        queues: Callable[[], Collection[QueueName]],
        holder: str,
        *,
        ttl: timedelta = TTL,
        renew_every: timedelta = RENEW_EVERY,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.holder = holder
        self._broker = broker
        self._queues = queues
        self._ttl = ttl
        self._renew_every = renew_every
        self._on_change = on_change
        self._terms: dict[QueueName, int] = {}
        self._opened: set[QueueName] = set()
        self._troubled: set[QueueName] = set()

    def term(self, queue: QueueName) -> int | None:
        return self._terms.get(queue)

    @property
    def led(self) -> frozenset[QueueName]:
        """The queues that we lead."""
        return frozenset(self._terms)

    def refuse(self, queue: QueueName, term: int) -> None:
        if self._terms.get(queue) == term:
            del self._terms[queue]
            self._on_change()

    async def tick(self) -> timedelta:
        """Become or stay leader of every queue, give up those that left; the wait to the next.

        A queue that cannot be reached keeps its term: the term itself is the guard.
        """
        queues = frozenset(self._queues())
        await for_each([*queues], self._lead, at_once=_AT_ONCE)
        await for_each([*self._opened - queues], self._give_up, at_once=_AT_ONCE)
        return self._renew_every

    async def resign(self) -> None:
        """Give up every queue, so that another need not wait for the expiry.

        Raises BrokerError; the key then expires by itself.
        """
        led = [*self._opened]
        self._terms.clear()
        await for_each(led, self._give_up, at_once=_AT_ONCE)

    async def _lead(self, queue: QueueName) -> None:
        before = self._terms.get(queue)
        try:
            if queue not in self._opened:
                await self._broker.open_queue(queue)
                self._opened.add(queue)
            term = await self._broker.lead(queue, self.holder, self._ttl)
        except BrokerError as error:
            self._note_trouble(queue, error)
            return
        self._troubled.discard(queue)
        if self._terms.get(queue) != before:
            # A write was refused while we asked: this answer may be older than that.
            return
        if term == before:
            return
        if term is None:
            del self._terms[queue]
            logger.warning(
                "lost the lead of queue %s to another scheduler",
                queue,
                extra={"event": "lead_lost", **queue_fields(queue)},
            )
        else:
            self._terms[queue] = term
            logger.info(
                "leads queue %s",
                queue,
                extra={"event": "queue_led", **queue_fields(queue), "term": term},
            )
        self._on_change()

    async def _give_up(self, queue: QueueName) -> None:
        had = self._terms.pop(queue, None)
        await self._broker.resign(queue, self.holder)
        self._opened.discard(queue)
        if had is not None:
            self._on_change()

    def _note_trouble(self, queue: QueueName, error: BrokerError) -> None:
        if queue in self._troubled:
            return
        self._troubled.add(queue)
        level = logging.WARNING if isinstance(error, BrokerUnavailableError) else logging.ERROR
        logger.log(
            level,
            "cannot renew the lead of queue %s: %s",
            queue,
            error,
            extra={"event": "lead_not_renewed", **queue_fields(queue)},
        )
