"""The operator as a program: every part, who owns it, and the order of the end.

Always running, on a standby too: the look at the Lease, the inventory and its watch, the probes.
While leading: CronTasks, TaskQueues, autoscaler. Scheduler and upkeep run always and have nothing
to do without a term. None of them lives inside kopf, and an API server that is away stops neither
scheduler nor upkeep.
The end: what writes ends first, then the watch, then the Lease is released, so that whoever takes
it finds nobody writing. A part that dies of anything but trouble with others ends the whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta

from tidework.clock import Clock
from tidework.loop import Loop
from tidework.maintenance.upkeep import Upkeep
from tidework.model.identity import QueueName
from tidework.scheduler.leadership import Terms
from tidework.scheduler.registry import CronRegistry
from tidework.scheduler.scheduler import Scheduler
from tidework.scheduler.service import Ticker
from tidework_operator.autoscaling.loop import Autoscaler
from tidework_operator.cluster import Cluster, ClusterError
from tidework_operator.connections import Connections
from tidework_operator.crontasks.reconcile import CronTaskReconciler
from tidework_operator.events import Events
from tidework_operator.handlers import Access, Watch
from tidework_operator.inventory import Inventory, Relist
from tidework_operator.leadership import TROUBLE, ClusterLeadership, Election, WhileLeading
from tidework_operator.numbers import Parts, read_numbers
from tidework_operator.observations import Observations
from tidework_operator.patience import USUAL, Patience
from tidework_operator.probes import OperatorHealth
from tidework_operator.queue_broker import QueueBroker
from tidework_operator.queues import KnownQueues
from tidework_operator.settings import OperatorSettings
from tidework_operator.snapshot import Snapshot
from tidework_operator.taskqueues.reconcile import TaskQueueReconciler

logger = logging.getLogger(__name__)

LEADER_MARKER = "leader"
"""File of the state folder that says that this replica leads."""

_FOLLOW_CHANGES = ("crontasks", "taskqueues")
"""Parts that look at once when something has changed; the autoscaler looks every second."""

_TICK_WITHIN = timedelta(seconds=5)
_RELEASE_WITHIN = timedelta(seconds=3)


class OperatorService:
    """``run`` until ``stop``.

    access:       how kopf gets into the API server
    take_signals: installs the program's signal handlers (again: kopf replaces them)
    """

    def __init__(
        self,
        settings: OperatorSettings,
        cluster: Cluster,
        access: Access,
        clock: Clock,
        *,
        version: str = "0",
        take_signals: Callable[[], None] = lambda: None,
        patience: Patience = USUAL,
    ) -> None:
        self.inventory = Inventory()
        self.queues = KnownQueues(self.inventory, on_moved=self._on_moved)
        self.connections = Connections(settings.connections, settings.redis_url, self.queues.limits)
        self.registry = CronRegistry()
        self.observations = Observations()
        self._settings = settings
        self._cluster = cluster
        self._clock = clock
        self._patience = patience
        self._stopping = asyncio.Event()
        self._events = Events(cluster, clock, instance=settings.identity)
        self._broker = QueueBroker(self.connections, self.queues.connection)
        self.election = self._make_election()
        self.leadership = ClusterLeadership(
            self.election,
            self._broker,
            self._queues_to_lead,
            on_change=self._on_terms,
            on_refuse=self._on_refusal,
            patience=patience,
        )
        self.snapshot = Snapshot(
            self.election,
            self.inventory,
            self.connections,
            self.registry,
            clock,
            namespaces=settings.namespaces,
            on_found=self.queues.note_connection,
            patience=patience,
        )
        terms = FreshTerms(self.leadership, self._knows_crontasks)
        self.scheduler = Scheduler(self._broker, clock, self.registry, terms)
        self.upkeep = Upkeep(self._broker, self._queues_to_keep)
        self.leading = self._make_leading()
        parts = self._parts(version)
        self.health = OperatorHealth(
            clock, waits_for=self._waits_for, readings=lambda: read_numbers(parts)
        )
        self._make_loops(
            Watch(
                self.inventory,
                access,
                settings.namespaces,
                take_signals=take_signals,
                on_end=self._on_watch_end,
                patience=patience,
            )
        )
        self.inventory.subscribe(self._on_change)
        self.registry.subscribe(self._on_crontasks)

    def stop(self) -> None:
        """End ``run`` in order."""
        self._stopping.set()

    async def run(self) -> None:
        """Until ``stop``. Raises ExceptionGroup if a part has failed."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    loop: group.create_task(loop.run(), name=loop.name)
                    for loop in (*self._writers, *self._readers, *self._leaders, self.health.loop)
                }
                await self._stopping.wait()
                logger.info("the operator stops", extra={"event": "operator_ending"})
                self.health.stopping = True
                await _end(self._writers, tasks)
                self._watch.restart()
                await _end(self._readers, tasks)
                await _end(self._leaders, tasks)
                self.health.loop.stop()
        finally:
            await self._release_lease()

    def _make_election(self) -> Election:
        settings = self._settings
        return Election(
            self._cluster,
            self._clock,
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            identity=settings.identity,
            marker=settings.state_dir / LEADER_MARKER if settings.state_dir else None,
            on_change=self._on_lead,
            patience=self._patience,
        )

    def _parts(self, version: str) -> Parts:
        return Parts(
            version=version,
            inventory=self.inventory,
            election=self.election,
            leadership=self.leadership,
            scheduler=self.scheduler.counters,
            upkeep=self.upkeep.counters,
            observations=self.observations,
            loops=self.leading,
        )

    def _make_leading(self) -> dict[str, WhileLeading]:
        parts: dict[str, Callable[[], Ticker]] = {
            "crontasks": self._make_crontasks,
            "taskqueues": self._make_taskqueues,
            "autoscaler": self._make_autoscaler,
        }
        is_ready = lambda: self.inventory.complete  # noqa: E731
        return {
            name: WhileLeading(self.election, self._clock, make, is_ready=is_ready)
            for name, make in parts.items()
        }

    def _make_crontasks(self) -> Ticker:
        return CronTaskReconciler(
            self._cluster,
            self.inventory,
            self.registry,
            self.scheduler,
            self._events,
            self._clock,
            jobs=self._broker,
        )

    def _make_taskqueues(self) -> Ticker:
        return TaskQueueReconciler(
            self._cluster, self.inventory, self.observations, self._events, self._clock
        )

    def _make_autoscaler(self) -> Ticker:
        return Autoscaler(
            self._cluster,
            self.inventory,
            self._broker,
            self.leadership,
            self.observations,
            self._events,
            self._clock,
            self._settings.namespaces,
        )

    def _make_loops(self, watch: Watch) -> None:
        self._watch = watch
        self._relist = Relist(
            self._cluster,
            self.inventory,
            self._settings.namespaces,
            on_silent=watch.restart,
            patience=self._patience,
        )
        self._fires = Loop("scheduler", self.scheduler.tick, tolerates=TROUBLE)
        self._reconciles = {
            name: Loop(name, part.tick, tolerates=TROUBLE) for name, part in self.leading.items()
        }
        self._writers = (
            *self._reconciles.values(),
            self._fires,
            Loop("upkeep", self.upkeep.tick, tolerates=TROUBLE),
            Loop("snapshot", self.snapshot.tick, tolerates=TROUBLE),
        )
        self._lists = Loop("relist", self._relist.tick)
        self._readers = (Loop("watch", watch.tick), self._lists)
        self._raises = Loop("terms", self.leadership.tick, tolerates=TROUBLE)
        self._looks = Loop("lease", self.election.tick, tolerates=TROUBLE)
        self._leaders = (self._raises, self._looks)

    def _on_lead(self) -> None:
        self._raises.nudge()
        for loop in self._reconciles.values():
            loop.nudge()

    def _on_change(self) -> None:
        self._raises.nudge()
        for name in _FOLLOW_CHANGES:
            self._reconciles[name].nudge()

    def _on_watch_end(self) -> None:
        self._relist.hasten()
        self._lists.nudge()

    def _waits_for(self) -> str:
        if self.inventory.complete:
            return ""
        return self.inventory.trouble or "TaskQueues and CronTasks have not been listed yet"

    def _on_terms(self) -> None:
        self._fires.nudge()

    def _on_refusal(self) -> None:
        self._looks.nudge()

    def _on_moved(self, queue: QueueName) -> None:
        # The term of one Redis says nothing in another.
        self.leadership.forget(queue)
        self._raises.nudge()

    def _on_crontasks(self) -> None:
        self._raises.nudge()
        self._fires.nudge()

    def _knows_crontasks(self) -> bool:
        """Does the registry hold what this lead has read?"""
        return self.leading["crontasks"].is_fresh or self.snapshot.is_fresh

    def _queues_to_lead(self) -> Collection[QueueName]:
        return self.queues.names() | self.scheduler.queues()

    def _queues_to_keep(self) -> Collection[QueueName]:
        """Those that we lead and whose bounds are known: others might be pruned too early."""
        return [queue for queue in self.leadership.led if self.queues.has_limits(queue)]

    async def _release_lease(self) -> None:
        try:
            async with asyncio.timeout(_RELEASE_WITHIN.total_seconds()):
                await self.election.release()
        except (ClusterError, TimeoutError) as error:
            why = str(error) or "no answer in time"
            logger.warning(
                "the Lease could not be released and expires by itself: %s",
                why,
                extra={"event": "lease_not_released"},
            )
        await self.connections.close()


class FreshTerms:
    """The scheduler's terms: none until the CronTasks were read in the present lead.

    Without them it would take those of an earlier lead for all there are, or none at all, and
    have the records of the others forgotten.
    """

    def __init__(self, terms: Terms, knows_crontasks: Callable[[], bool]) -> None:
        self._terms = terms
        self._knows_crontasks = knows_crontasks

    def term(self, queue: QueueName) -> int | None:
        return self._terms.term(queue) if self._knows_crontasks() else None

    def refuse(self, queue: QueueName, term: int) -> None:
        self._terms.refuse(queue, term)


async def _end(loops: Sequence[Loop], tasks: dict[Loop, asyncio.Task[None]]) -> None:
    """Let the present ticks end, for a while."""
    for loop in loops:
        loop.stop()
    _, late = await asyncio.wait(
        [tasks[loop] for loop in loops], timeout=_TICK_WITHIN.total_seconds()
    )
    for task in late:
        logger.warning(
            "%s does not come to an end and is cancelled",
            task.get_name(),
            extra={"event": "part_cancelled"},
        )
        task.cancel()
    if late:
        await asyncio.wait(late)
