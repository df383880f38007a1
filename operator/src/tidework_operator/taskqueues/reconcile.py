"""Reconciling TaskQueues: objects into the cluster, conditions and numbers into the status.

Every round looks at everything: a new, a changed and a resumed TaskQueue are the same to it. A
round costs no request for a TaskQueue of which nothing changed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from tidework.clock import Clock
from tidework.manifests import ManifestErrors, TaskQueue
from tidework_operator.cluster import Cluster, ClusterError, Kind, Object
from tidework_operator.conditions import Condition, find_condition
from tidework_operator.documents import TaskQueueDocuments
from tidework_operator.events import Events
from tidework_operator.inventory import Inventory
from tidework_operator.naming import redis_secret
from tidework_operator.observations import Observation, Observations
from tidework_operator.taskqueues.judgement import READY, Subject, judge, judge_invalid
from tidework_operator.taskqueues.objects import WorkerObjects
from tidework_operator.taskqueues.pod_problems import find_problem
from tidework_operator.taskqueues.status import QUIET, differs, is_urgent, make_status

EVERY = timedelta(seconds=1)

_AT_ONCE = 8
_TRUST_OWN_WRITE_S = 30.0
"""So long our own write counts as there, though the inventory does not show it yet."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Written:
    """The status that was written last, when (monotonic), and how often that failed in a row."""

    status: Object
    at: float
    failures: int = 0


class TaskQueueReconciler:
    """``tick`` is for a Loop; nudge it when the inventory changes."""

    def __init__(
        self,
        cluster: Cluster,
        inventory: Inventory,
        observations: Observations,
        events: Events,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._documents = TaskQueueDocuments(inventory)
        self._observations = observations
        self._events = events
        self._clock = clock
        self._objects = WorkerObjects(cluster, clock)
        self._written: dict[str, _Written] = {}

    async def tick(self) -> timedelta:
        """One round over all TaskQueues; the wait until the next."""
        all_of_them = list(self._documents.all())
        uids = frozenset(str(found["metadata"].get("uid", "")) for found, _ in all_of_them)
        self._objects.keep(uids)
        self._written = {uid: last for uid, last in self._written.items() if uid in uids}
        turns = asyncio.Semaphore(_AT_ONCE)

        async def take_turn(found: Object, reading: TaskQueue | ManifestErrors) -> None:
            async with turns:
                await self._reconcile(found, reading)

        async with asyncio.TaskGroup() as group:
            for found, reading in all_of_them:
                group.create_task(take_turn(found, reading))
        return EVERY

    async def _reconcile(self, found: Object, reading: TaskQueue | ManifestErrors) -> None:
        if "deletionTimestamp" in found["metadata"]:
            return  # its objects go with it; there is nobody to tell anything
        if isinstance(reading, ManifestErrors):
            await self._tell(found, judge_invalid(reading), None)
            return
        seen = self._observations.get(reading.queue_name)
        objects = await self._objects.ensure(reading, seen)
        workers = None
        if seen is not None:
            now = self._clock.now()
            workers = find_problem(seen.deployment, seen.pods, reading.spec.redis, now)
        secret = redis_secret(reading.spec.redis)
        subject = Subject(objects, workers, seen, secret, reading.limits.keep_count)
        await self._tell(found, judge(subject), seen)

    async def _tell(
        self, found: Object, conditions: Sequence[Condition], seen: Observation | None
    ) -> None:
        metadata = found["metadata"]
        uid, now = metadata.get("uid", ""), self._clock.monotonic()
        last = self._written.get(uid)
        known = dict(found.get("status") or {})
        if last is not None and now - last.at < _TRUST_OWN_WRITE_S:
            known |= last.status
        status = make_status({**found, "status": known}, conditions, seen, self._clock.now())
        if not differs(status, known):
            return
        if last is not None and now - last.at < self._wait_s(last, status, known):
            return
        failures = 0 if last is None else last.failures
        try:
            await self._cluster.patch(
                Kind.TASK_QUEUE,
                metadata["namespace"],
                metadata["name"],
                {"status": status},
                subresource="status",
            )
        except ClusterError as error:
            if error.status != 404:
                extra = {
                    "event": "status_not_written",
                    "queue": metadata["name"],
                    "namespace": metadata["namespace"],
                }
                logger.warning("the status of %s: %s", metadata["name"], error, extra=extra)
            self._written[uid] = _Written({}, now, failures + 1)
            return
        self._written[uid] = _Written(status, now)
        await self._post_change(found, conditions, known)

    def _wait_s(self, last: _Written, status: Object, known: Object) -> float:
        """From the last write to the next."""
        if last.failures:
            return 2.0 ** min(last.failures - 1, 6)
        return 0.0 if is_urgent(status, known) else QUIET.total_seconds()

    async def _post_change(
        self, found: Object, conditions: Sequence[Condition], before: Object
    ) -> None:
        """An event when Ready turns, or is not true for another reason than before."""
        ready = next(each for each in conditions if each.type == READY)
        earlier = find_condition(before, READY) or {}
        if ready.status is None or earlier.get("reason") == ready.reason:
            return
        if ready.status is False:
            await self._events.post(found, ready.reason, ready.message, warning=True)
        elif earlier.get("status") == "False":
            await self._events.post(found, "Recovered", f"{ready.message} again")
