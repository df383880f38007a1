"""The supervisor: composes the worker's parts, starts them, and drains.

Order of the end, after SIGTERM or SIGINT:
 1. readyz turns false; no more claims, no more waiting at the inbox; presence says draining;
    no other version of the application is loaded any more
 2. jobs that have not started are released
 3. running jobs finish: until the grace is over or a second signal comes; leases are renewed.
    Those at a checkpoint end after their item and are released
 4. what still runs then is killed and released, its attempt uncounted
 5. the last exchanges settle; if Redis is away, for some seconds only: the leases do the rest
 6. presence leaves; children, then the template, then connections and probes end
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tidework.broker.broker import Claims
from tidework.clock import Clock, SystemClock
from tidework.errors import BrokerError
from tidework.loop import Loop
from tidework.metrics import WorkerNumbers
from tidework.model.identity import QueueName, new_incarnation
from tidework.opening import open_queues
from tidework.settings import WorkerSettings
from tidework.worker.announcing import Announcing, warn_of_other_queues
from tidework.worker.child_config import ChildConfig
from tidework.worker.health import WorkerHealth
from tidework.worker.heartbeat import Heartbeat
from tidework.worker.held import StopReason
from tidework.worker.memory.gauge import find_gauge
from tidework.worker.memory.guard import MemoryGuard
from tidework.worker.memory.usage import MIB
from tidework.worker.memory.watch import MemoryWatch
from tidework.worker.orphans import Orphans
from tidework.worker.places.slot import Recycling
from tidework.worker.places.slots import SlotPool
from tidework.worker.presence import WorkerPresence
from tidework.worker.queue.consumer import Consumer
from tidework.worker.queue.facts import WorkerFacts
from tidework.worker.queue.inbox import Inbox
from tidework.worker.queue.job_log import JobLog
from tidework.worker.queue.readmission import readmit
from tidework.worker.queue.renewal import Renewal
from tidework.worker.services import Services
from tidework.worker.signals import StopRequest, handled
from tidework.worker.stack_reports import StackReports
from tidework.worker.template.keeper import TemplateKeeper
from tidework.worker.template.launch import TemplateProcess
from tidework.worker.version import version

SETTLE_PATIENCE = 5.0
"""Seconds for the last exchanges, and for killed children to be gone."""

logger = logging.getLogger(__name__)


class _Stopped(Exception):  # noqa: N818 - no error: the way out of the start
    """A signal came before the worker had started."""


class Supervisor:
    """One life of a worker; made and run inside a running loop.

    adopt: reap every child of this process and kill those that were not started here: only for
           a process that is nothing but a worker
    first: a template that runs already
    """

    def __init__(
        self,
        settings: WorkerSettings,
        broker: Claims,
        clock: Clock | None = None,
        *,
        adopt: bool = False,
        first: TemplateProcess | None = None,
    ) -> None:
        self.incarnation = new_incarnation(settings.worker_name)
        self.stop = StopRequest()
        self._broken: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._settings = settings
        self._broker = broker
        clock = self._clock = clock or SystemClock()
        self._queues = [QueueName(settings.namespace, name) for name in settings.queue]
        self.numbers = WorkerNumbers(version(), settings.places, lambda: self.pool.busy)
        self._keeper = TemplateKeeper(ChildConfig.of(settings), first)
        self._orphans = Orphans(self._is_ours, self._on_fallen) if adopt else None
        self.pool = SlotPool(
            settings.places,
            self._keeper,
            Recycling(settings.recycle_jobs, settings.recycle_memory_mib * MIB),
            clock,
            has_loop=settings.has_loop,
            cancel_grace=settings.cancel_grace_seconds,
            on_child_gone=self._on_child_gone,
        )
        self.health = WorkerHealth(self.pool, self.numbers, clock)
        self._stacks = StackReports(self.pool, self._keeper, clock)
        self._keeper.on_reloaded = self._readmit
        self._compose_queues()

    def _compose_queues(self) -> None:
        settings, clock = self._settings, self._clock
        cap = settings.poison_cap
        job_logs = [
            JobLog(queue.name, self.numbers, clock, cap, settings.lease) for queue in self._queues
        ]
        facts = self._facts = WorkerFacts(
            self.incarnation,
            self._keeper.specs,
            settings.hard_timeout_seconds,
            settings.unknown_task_grace_seconds,
            settings.lease,
            self._keeper.async_tasks if settings.has_loop else None,
            settings.poison_cap,
        )
        self._consumers = [
            Consumer(queue, index, self._broker, self.pool, facts, job_logs[index], clock)
            for index, queue in enumerate(self._queues)
        ]
        for consumer in self._consumers:
            self.pool.add_source(consumer)
            consumer.on_asked = self._beat_now
        pairs = list(zip(self._consumers, job_logs, strict=True))
        self._inboxes = [
            Inbox(consumer, self._broker, job_log, clock, settings.lease)
            for consumer, job_log in pairs
        ]
        self._renewal = Renewal(self._broker, self.incarnation, pairs, settings.lease)
        self._announcing = Announcing(self._broker, facts.specs, settings.app_version, clock)
        presence = WorkerPresence(
            self._queues, self.pool, self._consumers, self.health, self.numbers, clock
        )
        self._heartbeat = Heartbeat(
            self._broker,
            self.incarnation,
            list(zip(self._queues, job_logs, strict=True)),
            presence.document,
            self._stacks,
            self.numbers,
            clock,
            self._announcing.announce,
        )

    async def run(self) -> None:
        """Work until asked to stop, then drain.

        Raises ConfigurationError or a BrokerError that waiting does not mend if it cannot start, an
        ExceptionGroup if one of its services dies.
        """
        asyncio.get_running_loop().set_exception_handler(self._on_loop_error)
        with handled(
            self.stop,
            on_child=self._on_child,
            on_reload=self._reload,
            on_stacks=self._stacks.on_signal,
        ):
            self._stacks.answer_signal()
            try:
                with suppress(_Stopped):
                    await self._start()
                    await self._serve()
            finally:
                await self._end()

    async def _start(self) -> None:
        try:
            async with asyncio.TaskGroup() as starting:
                watch = starting.create_task(self._raise_when_stopped())
                others = [self.health.loop, self._stacks.loop]
                turning = [starting.create_task(loop.run()) for loop in others]
                app = starting.create_task(self._import_app())
                await open_queues(self._broker, self._queues)
                self.health.redis_answered = True
                await app
                for started in (watch, *turning):
                    started.cancel()
        except BaseExceptionGroup as group:
            raise _first(group) from None

    async def _raise_when_stopped(self) -> None:
        await self.stop.asked.wait()
        raise _Stopped

    async def _import_app(self) -> None:
        await self._keeper.start(self.pool)
        self.health.app_imported = True

    async def _serve(self) -> None:
        names = [str(queue) for queue in self._queues]
        extra: dict[str, object] = {
            "event": "worker_started",
            "queues": names,
            "incarnation": self.incarnation,
        }
        if self._settings.has_loop:
            extra["async_slots"] = self._settings.places
        else:
            extra["slots"] = self._settings.places
        logger.info("worker started", extra=extra)
        warn_of_other_queues(self._keeper.specs, self._settings.queue)
        # What the start made stays: a collection that walks over it is a pause for every job.
        gc.collect()
        gc.freeze()
        taking = [loop for inbox in self._inboxes for loop in (inbox.watch, inbox.sweep)]
        others = [self.health.loop, *self._memory_loops()]
        others += [self._renewal.loop, self._heartbeat.loop, self._stacks.loop]
        others += [loop for each in self._consumers for loop in (each.loop, each.notes.loop)]
        async with asyncio.TaskGroup() as group:
            services = Services(group, [*taking, *others])
            watch = group.create_task(self._raise_when_broken(services))
            await self.stop.asked.wait()
            self.health.draining = True
            self._keeper.keep_version()
            self._beat_now()
            # At once: a child that ends its job meanwhile must not find the next one in its pipe.
            self._release_unstarted()
            self.pool.stopping.leave(self.pool.links())
            await services.end(taking)
            await self._drain()
            await services.end(others)
            watch.cancel()
        logger.info(
            "worker ended", extra={"event": "worker_ended", "incarnation": self.incarnation}
        )

    def _memory_loops(self) -> list[Loop]:
        settings, clock = self._settings, self._clock
        own = settings.memory_limit_mib
        gauge = find_gauge(None if own is None else own * MIB)
        loops = [MemoryWatch(self.pool, clock).loop]
        if gauge is not None:
            most = settings.memory_most_percent / 100
            loops.append(MemoryGuard(self.pool, gauge, most, clock).loop)
        return loops

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """An error in a callback (a report of a child, a timer) is a dead service, too."""
        loop.default_exception_handler(dict(context))
        error = context.get("exception")
        if "handle" in context and error is not None and not self._broken.done():
            self._broken.set_result(error)

    async def _raise_when_broken(self, services: Services) -> None:
        error = await asyncio.shield(self._broken)
        services.stop()
        raise error

    async def _drain(self) -> None:
        self._release_unstarted()
        for consumer in self._consumers:
            # A marker may have been taken from the inbox in the last moment: say so, that the
            # exchange puts it back for others.
            consumer.on_work(woken=True)
        # So may a job.
        await self._wait_all([inbox.end() for inbox in self._inboxes], SETTLE_PATIENCE)
        grace = self._settings.grace.total_seconds()
        if not await self._wait_all([c.wait_quiet() for c in self._consumers], grace):
            self.pool.kill_running(StopReason.WORKER_LEAVES)
            quiet = [consumer.wait_quiet() for consumer in self._consumers]
            await _wait_for(quiet, SETTLE_PATIENCE)
        pairs = zip(self._inboxes, self._consumers, strict=True)
        settled = [_end_claims(inbox, consumer) for inbox, consumer in pairs]
        if not await _wait_for(settled, SETTLE_PATIENCE):
            logger.error(
                "Redis does not answer: unsettled jobs return when their leases expire",
                extra={"event": "settlements_left"},
            )
            return
        with suppress(BrokerError):
            await self._heartbeat.leave()

    def _release_unstarted(self) -> None:
        for consumer in self._consumers:
            consumer.drain()
        self.pool.take_back_unstarted()

    async def _wait_all(self, waits: Sequence[Awaitable[None]], seconds: float) -> bool:
        """Wait for all; False when the time is up or a second signal came first."""
        hurried = asyncio.ensure_future(self.stop.hurried.wait())
        everything = asyncio.ensure_future(_wait_for(waits, seconds))
        await asyncio.wait({hurried, everything}, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if everything.done():
            return everything.result()
        everything.cancel()
        return False

    async def _end(self) -> None:
        self.pool.close()
        if not await _wait_for([self.pool.wait_empty()], SETTLE_PATIENCE):
            logger.error(
                "a child does not end; it is left to the system", extra={"event": "child_left"}
            )
        await self._keeper.close()
        self._stacks.close()
        with suppress(BrokerError):
            await self._broker.close()

    def _beat_now(self) -> None:
        self._heartbeat.loop.nudge()

    def _reload(self) -> None:
        if self.stop.asked.is_set():
            logger.info(
                "SIGHUP: the worker drains, so the application is not reloaded",
                extra={"event": "reload_ignored"},
            )
            return
        logger.info(
            "SIGHUP: the application is reloaded, for jobs that start after that",
            extra={"event": "reload_asked"},
        )
        self._keeper.reload()

    def _readmit(self) -> None:
        for consumer in self._consumers:
            readmit(consumer, self._facts.admit)
        self._announcing.renew()
        self._beat_now()
        self.pool.run()

    def _on_child(self) -> None:
        self._keeper.reap()
        if self._orphans is not None:
            self._orphans.reap()

    def _on_child_gone(self) -> None:
        if self._orphans is not None:
            self._orphans.kill()

    def _is_ours(self, pid: int) -> bool:
        return self._keeper.is_template(pid) or self.pool.has_child(pid)

    def _on_fallen(self, pid: int, code: int | None) -> None:
        self.pool.on_child_ended(pid, code)


async def _end_claims(inbox: Inbox, consumer: Consumer) -> None:
    # Whoever is in a hurry has not waited for the inbox before.
    await inbox.end()
    await consumer.wait_settled()


async def _wait_for(waits: Sequence[Awaitable[None]], seconds: float) -> bool:
    """Wait for all; False when the time is up."""
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(*waits)
    except TimeoutError:
        return False
    return True


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first single error of a group."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
