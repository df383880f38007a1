"""The scheduler: every due instant of every CronTask becomes a verdict in its queue.

One tick serves all queues that we lead, each in a bounded round: trouble with one does not keep
the others waiting. Fire times follow this machine's wall clock; how far it is from the clock of
Redis is watched and told. Deciding is in due.py, the queues' rounds are in queue_scheduler.py.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import timedelta

from tidework.broker.broker import Leader
from tidework.clock import Clock, from_ms
from tidework.errors import BrokerError, StaleTermError
from tidework.logs import queue_fields
from tidework.model.identity import QueueName
from tidework.model.schedules.cron import tzdata_version
from tidework.scheduler.counters import SchedulerCounters
from tidework.scheduler.each import for_each
from tidework.scheduler.leadership import Terms
from tidework.scheduler.queue_scheduler import QueueScheduler
from tidework.scheduler.registry import CronRegistry
from tidework.scheduler.status import Circumstances, CronStatus, describe

logger = logging.getLogger(__name__)

# The wait is bounded, since the wall clock may be set while we wait by another one.
_LONGEST_WAIT = timedelta(seconds=1)
_REST_AFTER_ERROR = timedelta(seconds=1)
_QUEUES_AT_ONCE = 8
_ARMED_PER_ROUND = 200

SKEW_LIMIT = timedelta(seconds=5)
_SKEW_EVERY = timedelta(seconds=30)


class Scheduler:
    """``tick`` is for a Loop; nudge that loop when the registry or the leadership changes."""

    def __init__(self, broker: Leader, clock: Clock, registry: CronRegistry, terms: Terms) -> None:
        self.counters = SchedulerCounters()
        self.clock_skew: timedelta | None = None
        self._broker = broker
        self._clock = clock
        self._registry = registry
        self._terms = terms
        self._version = -1
        self._queues: dict[QueueName, QueueScheduler] = {}
        self._resting: dict[QueueName, float] = {}
        self._troubles: dict[QueueName, str] = {}
        self._skew_checked: float | None = None

    def queues(self) -> frozenset[QueueName]:
        """Every queue that needs a leader: a queue that left stays until its mirror is cleared."""
        return self._registry.queues | frozenset(self._queues)

    async def tick(self) -> timedelta:
        """One round for every queue that we lead; the wait until the next."""
        if self._registry.version != self._version:
            self._take_changes()
        leading = [queue for queue in self._queues.values() if self._may_serve(queue)]
        await for_each(leading, self._serve, at_once=_QUEUES_AT_ONCE)
        budget = _ARMED_PER_ROUND
        for queue in leading:
            budget -= queue.arm(budget)
        await self._check_skew(leading)
        self._drop_cleared()
        return self._wait(leading)

    async def status(self, uid: str) -> CronStatus | None:
        """A CronTask as it stands; None for an unknown uid."""
        spec = self._registry.specs.get(uid)
        if spec is None:
            return None
        trouble = self._troubles.get(spec.queue, "")
        record = None
        try:
            record = await self._broker.cron_record(spec.queue, uid)
        except BrokerError as error:
            trouble = str(error)
        circumstances = Circumstances(
            now=self._clock.now(),
            led=self._terms.term(spec.queue) is not None,
            trouble=trouble,
            clock_skew=self.clock_skew,
        )
        return describe(spec, record, circumstances)

    def _take_changes(self) -> None:
        now = self._clock.now()
        if self._version < 0:
            logger.info(
                "fire times by the time zones of tzdata %s",
                tzdata_version(),
                extra={"event": "time_zones_loaded"},
            )
        self._version = self._registry.version
        by_queue = self._registry.by_queue()
        for name in self._registry.queues:
            if name not in self._queues:
                self._queues[name] = QueueScheduler(name, self._broker, self._clock, self.counters)
        for name, queue in self._queues.items():
            queue.accept(by_queue.get(name, {}), now)

    def _drop_cleared(self) -> None:
        """Forget queues that left the registry, once their mirror is cleared or another's."""
        for name in self._queues.keys() - self._registry.queues:
            queue = self._queues[name]
            if queue.cleared or self._terms.term(name) is None:
                del self._queues[name]

    def _wait(self, leading: Collection[QueueScheduler]) -> timedelta:
        now = self._clock.now()
        waits = [queue.wait(now) for queue in leading]
        return min([_LONGEST_WAIT, *(wait for wait in waits if wait is not None)])

    def _may_serve(self, queue: QueueScheduler) -> bool:
        """Do we lead it, and is it not resting after an error?"""
        until = self._resting.get(queue.queue)
        if until is not None and self._clock.monotonic() < until:
            return False
        self._resting.pop(queue.queue, None)
        queue.follow(self._terms.term(queue.queue))
        return queue.term is not None

    async def _serve(self, queue: QueueScheduler) -> None:
        term = queue.term
        try:
            await queue.serve()
        except StaleTermError as error:
            self.counters.fenced_writes += 1
            logger.warning(
                "a write was refused, another scheduler leads: %s",
                error,
                extra={"event": "write_fenced", **queue_fields(queue.queue)},
            )
            queue.follow(None)
            if term is not None:
                self._terms.refuse(queue.queue, term)
        except BrokerError as error:
            self._rest(queue, error)
        else:
            if self._troubles.pop(queue.queue, None) is not None:
                logger.info(
                    "queue %s is served again",
                    queue.queue,
                    extra={"event": "fires_resumed", **queue_fields(queue.queue)},
                )

    def _rest(self, queue: QueueScheduler, error: BrokerError) -> None:
        """Leave a queue alone for a moment; whatever was decided in it is read again then."""
        self.counters.failed_rounds += 1
        queue.follow(None)
        self._resting[queue.queue] = self._clock.monotonic() + _REST_AFTER_ERROR.total_seconds()
        if queue.queue not in self._troubles:
            logger.warning(
                "fires of queue %s have to wait: %s",
                queue.queue,
                error,
                extra={"event": "fires_waiting", **queue_fields(queue.queue)},
            )
        self._troubles[queue.queue] = str(error)

    async def _check_skew(self, leading: Collection[QueueScheduler]) -> None:
        """Compare our wall clock with that of Redis, now and then, by way of one queue."""
        queue = next((found.queue for found in leading if found.term is not None), None)
        moment = self._clock.monotonic()
        checked = self._skew_checked
        if queue is None or (checked and moment - checked < _SKEW_EVERY.total_seconds()):
            return
        self._skew_checked = moment
        before = self._clock.now()
        try:
            load = await self._broker.gather(queue, horizon=timedelta(0))
        except BrokerError:
            # The next round of that queue will tell.
            return
        between = before + (self._clock.now() - before) / 2
        skew = between - from_ms(load.now_ms)
        was_skewed = self.clock_skew is not None and abs(self.clock_skew) > SKEW_LIMIT
        self.clock_skew = skew
        if abs(skew) > SKEW_LIMIT and not was_skewed:
            logger.warning(
                "this machine's clock is %.1f s %s that of Redis; fires follow this machine",
                abs(skew).total_seconds(),
                "ahead of" if skew > timedelta(0) else "behind",
                extra={"event": "clock_differs"},
            )
        elif was_skewed and abs(skew) <= SKEW_LIMIT:
            logger.info(
                "this machine's clock agrees with that of Redis again",
                extra={"event": "clock_agrees"},
            )
