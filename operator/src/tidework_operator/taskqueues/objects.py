"""Bringing the objects of a TaskQueue into the cluster, and keeping them as they should be.

Applied when the TaskQueue changes, when the Deployment is gone, and every few minutes, which mends
what somebody else changed; an operator that starts trusts the hash on the Deployment meanwhile.
The Deployment comes last: with its hash, all the others have been applied. One that is controlled
by something else is never touched, and one without its template has no replicas.
"""

from __future__ import annotations

import logging
import zlib
from dataclasses import dataclass

from tidework.clock import Clock
from tidework.logs import queue_fields
from tidework.manifests import IMAGE_MISSING, TaskQueue
from tidework_operator.cluster import SCALE_MANAGER, Cluster, ClusterError, Kind, Object
from tidework_operator.naming import (
    DESIRED_HASH_ANNOTATION,
    all_workers_selector,
    controller_uid,
    has_template,
    worker_selector,
    workers_name,
)
from tidework_operator.observations import Observation, Trouble
from tidework_operator.taskqueues.desired import Desired, desired_objects, seed_of
from tidework_operator.taskqueues.refusals import trouble_of

REAPPLY_S = 300.0
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 300.0

_LOOKS_OLD_S = 10.0
"""What was observed within this after an application may be older than it."""

_NO_IMAGE = Trouble("ImageMissing", f"spec.image is not set; {IMAGE_MISSING}")

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Applied:
    """Of one TaskQueue: what was tried last, when (monotonic), and what became of it."""

    hash: str
    at: float
    trouble: Trouble | None = None
    failures: int = 0


class WorkerObjects:
    """Keeps the objects of all TaskQueues."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._applied: dict[str, _Applied] = {}
        self._desired: dict[str, tuple[TaskQueue, Desired]] = {}

    def keep(self, uids: frozenset[str]) -> None:
        """Forget all other TaskQueues; their objects go with them."""
        self._applied = {uid: last for uid, last in self._applied.items() if uid in uids}
        self._desired = {uid: made for uid, made in self._desired.items() if uid in uids}

    async def ensure(self, queue: TaskQueue, seen: Observation | None) -> Trouble | None:
        """Apply if it is time to; what is wrong with the objects, None if nothing."""
        if queue.spec.image is None:
            return _NO_IMAGE
        desired = self._make(queue)
        uid, now = queue.metadata.uid, self._clock.monotonic()
        last = self._applied.get(uid)
        if last is None:
            if seen is None:
                return None  # the autoscaler looks within a second: then we know what is there
            last = self._trust(uid, desired, seen, now)
        if last is not None and not self._is_due(last, desired, seen, now):
            return last.trouble
        failures = 0 if last is None or last.hash != desired.hash else last.failures
        trouble = await self._try(queue, desired)
        failures = failures + 1 if trouble is not None else 0
        self._applied[uid] = _Applied(desired.hash, now, trouble, failures)
        return trouble

    def _make(self, queue: TaskQueue) -> Desired:
        """As before while the document is the same one."""
        made = self._desired.get(queue.metadata.uid)
        if made is None or made[0] is not queue:
            made = self._desired[queue.metadata.uid] = (queue, desired_objects(queue))
        return made[1]

    def _trust(self, uid: str, desired: Desired, seen: Observation, now: float) -> _Applied | None:
        """What an earlier leader applied counts; looked after at a moment that differs by uid."""
        annotations = (seen.deployment or {"metadata": {}})["metadata"].get("annotations") or {}
        if annotations.get(DESIRED_HASH_ANNOTATION) != desired.hash:
            return None
        elapsed = zlib.crc32(uid.encode()) % REAPPLY_S
        self._applied[uid] = _Applied(desired.hash, now - elapsed)
        return self._applied[uid]

    def _is_due(
        self, last: _Applied, desired: Desired, seen: Observation | None, now: float
    ) -> bool:
        if last.hash != desired.hash:
            return True
        if last.failures:
            # Bounded before the power is taken: failures may be many.
            doublings = min(last.failures - 1, 10)
            return now - last.at >= min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**doublings)
        is_lacking = seen is not None and (
            seen.deployment is None or not has_template(seen.deployment)
        )
        wait = _LOOKS_OLD_S if is_lacking else REAPPLY_S
        return now - last.at >= wait

    async def _try(self, queue: TaskQueue, desired: Desired) -> Trouble | None:
        try:
            return await self._apply(queue, desired)
        except ClusterError as error:
            name = queue.queue_name
            extra = {"event": "objects_not_written", **queue_fields(name)}
            logger.warning("the objects of TaskQueue %s: %s", name, error, extra=extra)
            return trouble_of(error)

    async def _apply(self, queue: TaskQueue, desired: Desired) -> Trouble | None:
        place = queue.metadata.namespace, workers_name(queue.metadata.name)
        found = await self._cluster.get(Kind.DEPLOYMENT, *place)
        if found is not None and (trouble := _foreign(found, queue)) is not None:
            return trouble
        is_bare = found is None or not has_template(found)
        if found is not None and is_bare and found["spec"].get("replicas", 1) > 0:
            # Somebody's hand, or an operator of an earlier version: these pods are no workers.
            await self._set_replicas(place, 0)
        for kind, body in desired.others:
            await self._cluster.apply(kind, body)
        if found is None:
            # Not by applying: two operators at once must not both believe that it is new.
            await self._cluster.create(
                Kind.DEPLOYMENT, seed_of(desired.deployment), manager=SCALE_MANAGER
            )
        await self._cluster.apply(Kind.DEPLOYMENT, desired.deployment)
        spec = queue.spec
        first = spec.min_replicas if spec.replicas is None else spec.replicas
        if is_bare and first > 0:
            # The load may be unknown for long yet; minReplicas are wanted in any case.
            await self._set_replicas(place, first)
        return None

    async def _set_replicas(self, place: tuple[str, str], replicas: int) -> None:
        await self._cluster.patch(
            Kind.DEPLOYMENT,
            *place,
            {"spec": {"replicas": replicas}},
            subresource="scale",
            manager=SCALE_MANAGER,
        )


def _foreign(found: Object, queue: TaskQueue) -> Trouble | None:
    """Why this Deployment neither is nor may become the TaskQueue's; None if it is or may."""
    metadata = found["metadata"]
    labels = metadata.get("labels") or {}
    controller = controller_uid(found)
    if controller == queue.metadata.uid:
        return None
    name = metadata["name"]
    wanted = {**all_workers_selector(), **worker_selector(queue.metadata.name)}
    if not wanted.items() <= labels.items():
        return Trouble(
            "NameTaken",
            f"Deployment {name} exists and is not of Tidework; rename it, or this TaskQueue",
        )
    if controller or "deletionTimestamp" in metadata:
        return Trouble(
            "PredecessorRemains",
            f"Deployment {name} still belongs to an earlier TaskQueue of this name; waiting "
            "until the cluster has deleted it",
        )
    return None  # orphaned on purpose, or restored: it is adopted
