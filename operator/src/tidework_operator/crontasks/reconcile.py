"""Reconciling CronTasks: the inventory's documents into the registry, and their status back.

Nothing is taken out of the registry before the inventory is complete: what leaves it loses its
record in the queue. A CronTask that cannot be served leaves it too; its conditions tell why.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from tidework.clock import Clock
from tidework.model.identity import QueueName, is_dns_label
from tidework.scheduler.each import for_each
from tidework.scheduler.registry import CronRegistry
from tidework_operator.cluster import Cluster, Kind, Object
from tidework_operator.crontasks.documents import CronTaskDocuments
from tidework_operator.crontasks.judgement import Subject
from tidework_operator.crontasks.lookout import Lookout
from tidework_operator.crontasks.reporting import JobSource, StatusReporter, StatusSource
from tidework_operator.crontasks.watched import Watched
from tidework_operator.events import Events
from tidework_operator.inventory import Inventory

_TICK_EVERY = timedelta(seconds=1)
_LOOKS_PER_S = 100.0
_LOOKS_AT_ONCE = 8
_SETTLING_S = 1.0


class CronTaskReconciler:
    """``tick`` is for a Loop of the leader; nudge that loop when the inventory changes.

    registry:      replaced whenever the documents change
    status_source: the Scheduler; jobs: the Broker, which tells how runs ended
    """

    def __init__(
        self,
        cluster: Cluster,
        inventory: Inventory,
        registry: CronRegistry,
        status_source: StatusSource,
        events: Events,
        clock: Clock,
        *,
        jobs: JobSource,
    ) -> None:
        self.reporter = StatusReporter(cluster, status_source, events, clock, jobs=jobs)
        self._inventory = inventory
        self._registry = registry
        self._clock = clock
        self._documents = CronTaskDocuments(clock)
        self._lookout = Lookout()
        self._watched: dict[str, Watched] = {}
        self._seen_changes = -1
        self._looked_at = clock.monotonic()
        self._allowance = 0.0

    async def tick(self) -> timedelta:
        """Take what changed, look at a bounded number of CronTasks; the wait until the next."""
        if not self._inventory.complete:
            return _TICK_EVERY
        is_first = self._seen_changes < 0
        if self._inventory.changes != self._seen_changes:
            self._seen_changes = self._inventory.changes
            self._take_changes()
        if is_first:
            # Fires wait for this round; telling people of them may take its time.
            return timedelta(0)
        taken = self._lookout.take(self._clock.monotonic(), self._allow())
        await for_each(taken, self._look, at_once=_LOOKS_AT_ONCE)
        self._allowance -= len(taken)
        return _TICK_EVERY

    def _allow(self) -> int:
        """How many looks there may be now, however often we are nudged."""
        now = self._clock.monotonic()
        earned = (now - self._looked_at) * _LOOKS_PER_S
        self._looked_at = now
        self._allowance = min(_LOOKS_PER_S, self._allowance + earned)
        return 0 if self.reporter.is_resting else int(self._allowance)

    def _take_changes(self) -> None:
        now = self._clock.monotonic()
        queues = _queues_of(self._inventory.objects(Kind.TASK_QUEUE))
        here: dict[str, Watched] = {}
        for found in self._inventory.objects(Kind.CRON_TASK):
            metadata = found["metadata"]
            if metadata.get("deletionTimestamp"):
                continue
            uid, namespace = metadata["uid"], metadata["namespace"]
            subject = Subject(namespace, self._documents.read(found), queues.get(namespace, {}))
            watched = self._watched.get(uid)
            # A moment later the scheduler has taken it up, and there is one write, not two.
            soon = now + (_SETTLING_S if subject.is_served else 0.0)
            if watched is None and _is_told(found):
                self._lookout.plan(uid, soon)
            elif watched is None or not watched.is_judged_like(subject):
                self._lookout.urge(uid, soon)
            here[uid] = watched or Watched(found, subject)
            here[uid].found, here[uid].subject = found, subject
        self._watched = here
        self._documents.keep(here.keys())
        self._lookout.keep(here.keys())
        self._register(_names_of(queues))

    def _register(self, queues: frozenset[QueueName]) -> None:
        """Have the registry fire what is served, if that differs from what it has."""
        specs = {
            uid: watched.spec for uid, watched in self._watched.items() if watched.spec is not None
        }
        known = self._registry.specs
        is_same = specs == known and all(
            spec.document == known[uid].document for uid, spec in specs.items()
        )
        if not is_same or queues != self._registry.queues:
            self._registry.replace(specs.values(), queues)

    async def _look(self, uid: str) -> None:
        wait = await self.reporter.report(self._watched[uid])
        self._lookout.plan(uid, self._clock.monotonic() + wait)


def _is_told(found: Object) -> bool:
    """Is its status about its present spec?"""
    status = found.get("status") or {}
    return bool(status.get("observedGeneration") == found["metadata"].get("generation"))


def _queues_of(found: list[Object]) -> dict[str, dict[str, int | None]]:
    """Namespace -> TaskQueue -> hardTimeoutSeconds."""
    queues: dict[str, dict[str, int | None]] = {}
    for taskqueue in found:
        metadata = taskqueue["metadata"]
        bound = (taskqueue.get("spec") or {}).get("hardTimeoutSeconds")
        known = bound if isinstance(bound, int) else None
        queues.setdefault(metadata["namespace"], {})[metadata["name"]] = known
    return queues


def _names_of(queues: Mapping[str, Mapping[str, int | None]]) -> frozenset[QueueName]:
    return frozenset(
        QueueName(namespace, name)
        for namespace, names in queues.items()
        for name in names
        if is_dns_label(name)
    )
