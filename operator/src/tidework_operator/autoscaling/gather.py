"""Gathering: what the API server and Redis say of the queues now.

Two lists per round serve all queues. The pods are listed before Redis is asked: a worker that the
list shows as ready has had the time to show itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from tidework.broker.broker import Leader
from tidework.errors import BrokerError, BrokerUnavailableError, ConfigurationError
from tidework.model.backlog import Presence, QueueLoad, QueueStats
from tidework.model.identity import QueueName
from tidework_operator.cluster import Cluster, Kind, Object
from tidework_operator.naming import (
    TASKQUEUE_LABEL,
    all_workers_selector,
    controller_uid,
    workers_name,
)
from tidework_operator.observations import Trouble

HORIZON = timedelta(seconds=10)
"""Jobs that become due within this keep the last worker."""

ANSWER_WITHIN_S = 2.0
"""Redis answers within this, or its queues hold: others must not wait for it."""


@dataclass(slots=True)
class ClusterSight:
    """Deployments and pods of workers, by queue."""

    deployments: dict[QueueName, Object] = field(default_factory=dict)
    pods: dict[QueueName, list[Object]] = field(default_factory=dict)

    def deployment_of(self, queue: QueueName, uid: str) -> Object | None:
        """The queue's Deployment, if the TaskQueue of this uid controls it."""
        found = self.deployments.get(queue)
        return found if found is not None and controller_uid(found) == uid else None


@dataclass(frozen=True, slots=True)
class RedisSight:
    """What Redis says of one queue; with ``trouble`` nothing is known."""

    load: QueueLoad | None = None
    stats: QueueStats | None = None
    workers: Sequence[Presence] = ()
    trouble: Trouble | None = None


async def look_at_cluster(cluster: Cluster, namespaces: Collection[str]) -> ClusterSight:
    """All workers. namespaces: empty = the whole cluster. Raises ClusterError."""
    labels = all_workers_selector()
    sight = ClusterSight()
    for namespace in tuple(namespaces) or (None,):
        for found in await cluster.list(Kind.DEPLOYMENT, namespace=namespace, labels=labels):
            queue = _queue_of(found)
            if queue is not None and found["metadata"]["name"] == workers_name(queue.name):
                sight.deployments[queue] = found
        for found in await cluster.list(Kind.POD, namespace=namespace, labels=labels):
            queue = _queue_of(found)
            if queue is not None:
                sight.pods.setdefault(queue, []).append(found)
    return sight


async def look_at_redis(broker: Leader, queue: QueueName) -> RedisSight:
    """One queue. Never raises: trouble is part of the answer."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            load = await broker.gather(queue, horizon=HORIZON)
            workers = await broker.workers(queue)
            return RedisSight(load, await broker.stats(queue), workers)
    except BrokerError as error:
        return RedisSight(trouble=_trouble(error))
    except TimeoutError:
        words = f"Redis has not answered within {ANSWER_WITHIN_S:g} s; check that it is healthy"
        return RedisSight(trouble=Trouble("RedisUnavailable", words))


def _trouble(error: BrokerError) -> Trouble:
    if isinstance(error.__cause__, ConfigurationError):
        return Trouble("ConnectionMissing", str(error))
    if isinstance(error, BrokerUnavailableError):
        return Trouble("RedisUnavailable", str(error))
    return Trouble("RedisRefused", str(error))


def _queue_of(found: Object) -> QueueName | None:
    """The queue that the labels name; None if somebody else made them up."""
    metadata = found["metadata"]
    try:
        return QueueName(metadata["namespace"], metadata["labels"].get(TASKQUEUE_LABEL, ""))
    except ConfigurationError:
        return None
