"""The autoscaler: once a second, look at the cluster, then serve every queue, each by itself.

Invariants: a queue that another leads, or that has no Deployment of its own, complete with its
template, is looked at and never touched; while the API server does not answer nothing is decided;
trouble with one queue's Redis does not keep the others waiting for longer than a round.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from datetime import timedelta

from tidework.broker.broker import Leader
from tidework.clock import Clock
from tidework.errors import BrokerError, StaleTermError
from tidework.logs import queue_fields
from tidework.manifests import TaskQueue
from tidework.scheduler.leadership import Terms
from tidework_operator.autoscaling.gather import (
    ClusterSight,
    RedisSight,
    look_at_cluster,
    look_at_redis,
)
from tidework_operator.autoscaling.memory import Memory
from tidework_operator.autoscaling.queue_round import QueueRound, Subject
from tidework_operator.cluster import Cluster, ClusterError, Object
from tidework_operator.documents import TaskQueueDocuments
from tidework_operator.events import Events
from tidework_operator.hearing import Hear, hear_worker
from tidework_operator.inventory import Inventory
from tidework_operator.naming import has_template
from tidework_operator.observations import Observation, Observations, ScalingReport, Trouble

EVERY = timedelta(seconds=1)

_QUEUES_AT_ONCE = 16

_NOT_LED = Trouble(
    "NotLed",
    "this operator does not lead the queue in Redis (yet); see RedisReachable and the operator's "
    "log if this stays",
)
_NO_DEPLOYMENT = Trouble(
    "NoDeployment", "the Deployment does not exist yet, or has no template yet; see Ready"
)

logger = logging.getLogger(__name__)


class Autoscaler:
    """``tick`` is for a Loop of its own.

    broker:       of every queue; one without a connection raises BrokerRefusedError
    observations: written here, read by whoever tells people
    namespaces:   those that the operator serves; empty = the whole cluster

    ``hear`` asks a worker why Redis does not hear of it.
    """

    def __init__(
        self,
        cluster: Cluster,
        inventory: Inventory,
        broker: Leader,
        terms: Terms,
        observations: Observations,
        events: Events,
        clock: Clock,
        namespaces: Collection[str] = (),
    ) -> None:
        self._cluster = cluster
        self._documents = TaskQueueDocuments(inventory)
        self._broker = broker
        self._terms = terms
        self._observations = observations
        self._clock = clock
        self._namespaces = tuple(namespaces)
        self.hear: Hear = hear_worker
        self._rounds = QueueRound(cluster, broker, observations, events, clock)
        self._memories: dict[str, Memory] = {}
        self._cluster_answers = True

    async def tick(self) -> timedelta:
        """One round over all queues; the wait until the next."""
        try:
            sight = await look_at_cluster(self._cluster, self._namespaces)
        except ClusterError as error:
            if self._cluster_answers:
                logger.warning(
                    "replicas stay as they are: %s", error, extra={"event": "scaling_suspended"}
                )
            self._cluster_answers = False
            return EVERY
        self._cluster_answers = True
        served = [
            (found, document)
            for found, document in self._documents.all()
            if isinstance(document, TaskQueue)
        ]
        self._observations.keep({document.queue_name for _, document in served})
        uids = {document.metadata.uid for _, document in served}
        self._memories = {uid: kept for uid, kept in self._memories.items() if uid in uids}
        turns = asyncio.Semaphore(_QUEUES_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for found, document in served:
                group.create_task(self._serve(found, document, sight, turns))
        return EVERY

    async def _serve(
        self, found: Object, document: TaskQueue, sight: ClusterSight, turns: asyncio.Semaphore
    ) -> None:
        queue, uid = document.queue_name, document.metadata.uid
        async with turns:
            redis = await look_at_redis(self._broker, queue)
            deployment = sight.deployment_of(queue, uid)
            pods = tuple(sight.pods.get(queue, ()))
            report = await self._scale(found, document, deployment, pods, redis)
            memory = self._memories.get(uid)
            silent = memory.silent(self._clock.monotonic()) if memory is not None else ()
            self._observations.put(
                queue,
                Observation(
                    deployment=deployment,
                    pods=pods,
                    load=redis.load,
                    stats=redis.stats,
                    redis_trouble=redis.trouble,
                    silent=silent,
                    heard=await self._hear(pods, silent),
                    scaling=report,
                ),
            )

    async def _hear(self, pods: tuple[Object, ...], silent: tuple[str, ...]) -> str:
        found = [pod for pod in pods if pod["metadata"]["name"] == silent[0]] if silent else []
        return await self.hear(found[0]) if found else ""

    async def _scale(
        self,
        found: Object,
        document: TaskQueue,
        deployment: Object | None,
        pods: tuple[Object, ...],
        redis: RedisSight,
    ) -> ScalingReport:
        queue, uid = document.queue_name, document.metadata.uid
        term = self._terms.term(queue)
        if term is None:
            self._memories.pop(uid, None)
            return _idle(deployment, redis.trouble or _NOT_LED)
        if deployment is None or not has_template(deployment):
            return _idle(deployment, _NO_DEPLOYMENT)
        memory = self._memories.get(uid)
        if memory is None or memory.term != term:
            memory = self._memories[uid] = Memory(term)
        try:
            await self._configure(document, memory)
            return await self._rounds.run(Subject(found, document, deployment, pods, redis), memory)
        except StaleTermError as error:
            logger.warning(
                "%s", error, extra={"event": "write_fenced", **queue_fields(queue), "term": term}
            )
            self._terms.refuse(queue, term)
            self._memories.pop(uid, None)
            return _idle(deployment, _NOT_LED)

    async def _configure(self, document: TaskQueue, memory: Memory) -> None:
        """Tell the queue's clients, once per term and change. Raises StaleTermError."""
        durability = document.spec.durability
        if memory.configured is durability:
            return
        try:
            await self._broker.configure(document.queue_name, memory.term, durability)
        except StaleTermError:
            raise
        except BrokerError:
            return  # told as RedisReachable; the next round does it
        memory.configured = durability


def _idle(deployment: Object | None, trouble: Trouble) -> ScalingReport:
    replicas = 0 if deployment is None else deployment["spec"].get("replicas", 1)
    return ScalingReport(wanted=replicas, why=trouble.message, inactive=trouble)
