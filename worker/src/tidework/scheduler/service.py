"""The scheduler as a program: leadership, fires and upkeep under one owner.

Shutdown order: the loops end after their present tick, then leadership is resigned, so that a
standby takes over at once. A loop that dies of anything but trouble with Redis ends the whole.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import Protocol

from tidework.broker.broker import Leader
from tidework.clock import Clock, SystemClock
from tidework.errors import BrokerError
from tidework.loop import Loop, accept_signals
from tidework.model.identity import QueueName, new_incarnation
from tidework.opening import open_queues_until
from tidework.scheduler.leadership import RENEW_EVERY, TTL, QueueLeadership
from tidework.scheduler.registry import CronRegistry
from tidework.scheduler.scheduler import Scheduler
from tidework.scheduler.spec import CronSpec

logger = logging.getLogger(__name__)

_RESIGN_WITHIN = timedelta(seconds=2)


class Ticker(Protocol):
    """What a Loop can run."""

    async def tick(self) -> timedelta:
        """Do one round; the wait until the next."""


Keeper = Callable[[Leader, Callable[[], Collection[QueueName]]], Ticker]
"""Makes the upkeep of the queues that we lead: ``tidework.maintenance.upkeep.Upkeep``.

It is handed in, because maintenance and scheduler do not know each other."""


class SchedulerService:
    """Start ``run`` inside a TaskGroup; ``replace`` the documents whenever they change."""

    def __init__(
        self,
        broker: Leader,
        registry: CronRegistry,
        *,
        keeper: Keeper,
        clock: Clock | None = None,
        holder: str | None = None,
        ttl: timedelta = TTL,
        renew_every: timedelta = RENEW_EVERY,
    ) -> None:
        self.registry = registry
        self.leadership = QueueLeadership(
            broker,
            self._queues,
            holder or new_incarnation(socket.gethostname()),
            ttl=ttl,
            renew_every=renew_every,
            on_change=self._on_change,
        )
        self.scheduler = Scheduler(broker, clock or SystemClock(), registry, self.leadership)
        self.upkeep = keeper(broker, lambda: self.leadership.led)
        trouble = (BrokerError,)
        self._leads = Loop("leadership", self.leadership.tick, tolerates=trouble)
        self._fires = Loop("scheduler", self.scheduler.tick, tolerates=trouble)
        self._keeps = Loop("upkeep", self.upkeep.tick, tolerates=trouble)
        registry.subscribe(self._nudge)

    def replace(self, specs: Iterable[CronSpec], queues: Iterable[QueueName] = ()) -> None:
        """Fire these CronTasks from now on, lead these queues too.

        Raises ConfigurationError; then the former set stays.
        """
        self.registry.replace(specs, queues)

    async def run(self) -> None:
        """Until ``stop`` or cancellation; then another scheduler may lead at once."""
        try:
            async with asyncio.TaskGroup() as group:
                for loop in (self._leads, self._fires, self._keeps):
                    group.create_task(loop.run(), name=loop.name)
        finally:
            await self._resign()

    def stop(self) -> None:
        """End ``run`` after the present ticks."""
        for loop in (self._leads, self._fires, self._keeps):
            loop.stop()

    def _queues(self) -> Collection[QueueName]:
        return self.scheduler.queues()

    def _on_change(self) -> None:
        self._fires.nudge()

    def _nudge(self) -> None:
        self._leads.nudge()
        self._fires.nudge()

    async def _resign(self) -> None:
        try:
            async with asyncio.timeout(_RESIGN_WITHIN.total_seconds()):
                await self.leadership.resign()
        except BrokerError as error:
            logger.warning(
                "could not resign, the lead expires by itself: %s",
                error,
                extra={"event": "lead_not_resigned"},
            )
        except TimeoutError:
            logger.warning(
                "could not resign in time, the lead expires by itself",
                extra={"event": "lead_not_resigned"},
            )


async def run_scheduler(
    broker: Leader,
    specs: Iterable[CronSpec],
    queues: Iterable[QueueName] = (),
    *,
    keeper: Keeper,
) -> None:
    """The whole of ``tidework scheduler``: until SIGTERM or SIGINT.

    A Redis that cannot serve (yet) is waited out, at the start and later. Raises BrokerRefusedError
    if it refuses us at the start, LayoutError for a queue of another version.
    """
    service = SchedulerService(broker, CronRegistry(specs, queues), keeper=keeper)
    stop = asyncio.Event()

    def end() -> None:
        stop.set()
        service.stop()

    loop = asyncio.get_running_loop()
    accept_signals()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, end)
    try:
        if await open_queues_until(stop, broker, sorted(service.registry.queues)):
            await service.run()
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
