"""What the autoscaler saw of each queue in its last round, for whoever tells it to people.

Written by the autoscaler alone, once a second; the TaskQueue's status is made from it, so that
numbers and reasons that stand side by side are of one moment.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from tidework.model.backlog import QueueLoad, QueueStats
from tidework.model.identity import QueueName
from tidework.scaling import Limit
from tidework_operator.cluster import Object


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong. reason: CamelCase; message: names the remedy."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ScalingReport:
    """What was decided.

    wanted:     what the load, or a pin, asks for
    why:        the reason in words, with what a wanted change waits for
    limits:     why the replicas are not what the load asks for
    inactive:   why the replicas do not follow the load, None while they do
    last_scale: when we last changed the replicas, None if this leader did not
    """

    wanted: int
    why: str
    limits: tuple[Limit, ...] = ()
    inactive: Trouble | None = None
    last_scale: datetime | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """One queue.

    deployment: its Deployment, None without one that belongs to it
    pods:       of its workers, as the API server has them
    load, stats: None while Redis is in trouble; ``redis_trouble`` says why
    silent:     names of ready pods whose workers have not shown themselves to Redis for too long
    heard:      what the worker of the first of them says of its Redis, '' if it says nothing
    """

    deployment: Object | None
    pods: tuple[Object, ...]
    load: QueueLoad | None = None
    stats: QueueStats | None = None
    redis_trouble: Trouble | None = None
    silent: tuple[str, ...] = ()
    heard: str = ""
    scaling: ScalingReport | None = None


class Observations:
    """The last observation of each queue.

    wrong_victims: pods that were to go and stayed, as the ReplicaSet controller took others
    """

    def __init__(self) -> None:
        self.wrong_victims = 0
        self._of: dict[QueueName, Observation] = {}

    def get(self, queue: QueueName) -> Observation | None:
        """None until the queue was looked at once."""
        return self._of.get(queue)

    def put(self, queue: QueueName, observation: Observation) -> None:
        """Replace the last one."""
        self._of[queue] = observation

    def keep(self, queues: Collection[QueueName]) -> None:
        """Forget all others."""
        self._of = {queue: seen for queue, seen in self._of.items() if queue in queues}
