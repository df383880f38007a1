"""Plays what stands around the autoscaler: ReplicaSet controller, kubelet and workers.

One ``step`` is one second. The controller ranks its victims as Kubernetes does, reads deletion
costs from a cache that is late, and among equals it takes a pod that holds leases: whoever leaves
it a choice loses jobs. ``taken_busy`` names every pod that held a lease when it was taken.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import timedelta

from tests.support.fake_cluster import FakeCluster
from tidework.clock import ManualClock
from tidework.model.backlog import Presence
from tidework.model.identity import QueueName
from tidework.model.lease import ExchangeRequest, Settlement
from tidework.model.outcome import Outcome
from tidework.testing.memory.broker import MemoryBroker
from tidework_operator.autoscaling.fleet import read_fleet
from tidework_operator.cluster import Kind, Object
from tidework_operator.naming import DELETION_COST_ANNOTATION, worker_labels, workers_name

SECOND = timedelta(seconds=1)
PRESENCE_TTL = timedelta(seconds=30)


@dataclass(slots=True)
class Worker:
    """One pod with its worker.

    is_cut_off: it goes on, and Redis hears nothing of it
    age: seconds since it was created; held: job id -> (lease token, second at which it ends)
    """

    pod: str
    age: int = 0
    told_to_end: bool = False
    is_stuck: bool = False
    is_cut_off: bool = False
    sequence: int = 0
    held: dict[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def incarnation(self) -> str:
        return f"{self.pod}.1"


class WorkerFleet:
    """The replicas of one queue.

    slots, service: jobs at once, and the seconds that each takes
    start:          seconds from creation to readiness
    late:           rounds by which the controller's cache of costs is late
    """

    def __init__(
        self,
        cluster: FakeCluster,
        broker: MemoryBroker,
        clock: ManualClock,
        queue: QueueName,
        uid: str,
        *,
        slots: int = 1,
        service: int = 3,
        start: int = 2,
        late: int = 1,
    ) -> None:
        self.workers: dict[str, Worker] = {}
        self.taken_busy: list[str] = []
        self.taken: list[str] = []
        self.most = 0
        self.second = 0
        self._cluster = cluster
        self._broker = broker
        self._clock = clock
        self._queue = queue
        self._labels = worker_labels(queue.name, uid)
        self._slots = slots
        self._service = service
        self._start = start
        self._late = late
        self._costs: list[dict[str, int]] = []
        self._numbers = itertools.count(1)

    @property
    def deployment(self) -> Object:
        """As it is now."""
        name = workers_name(self._queue.name)
        return next(
            found
            for found in self._cluster.objects(Kind.DEPLOYMENT)
            if found["metadata"]["name"] == name
        )

    @property
    def pods(self) -> list[Object]:
        """As they are now."""
        return self._cluster.objects(Kind.POD)

    async def step(self) -> None:
        """A second passes."""
        self.second += 1
        self._clock.advance(SECOND)
        self._replace()
        for worker in list(self.workers.values()):
            await self._work(worker)
        self._show()

    def kill(self, pod: str) -> None:
        """The pod is gone without a word, its leases stay until they run out."""
        del self.workers[pod]
        self._cluster.remove(Kind.POD, self._queue.namespace, pod)

    def _replace(self) -> None:
        pods = {pod["metadata"]["name"]: pod for pod in self.pods}
        self._costs.append({name: _cost(pod) for name, pod in pods.items()})
        active = [name for name, pod in pods.items() if "deletionTimestamp" not in pod["metadata"]]
        wanted = self.deployment["spec"]["replicas"]
        for _ in range(wanted - len(active)):
            self._create()
        surplus = len(active) - wanted
        if surplus > 0:
            costs = self._costs[max(0, len(self._costs) - 1 - self._late)]
            fleet = read_fleet(
                self.deployment, [pods[name] for name in active], (), {}, self._clock.now()
            )
            ranks = {pod.name: pod.rank for pod in fleet.pods}
            active.sort(
                key=lambda name: (ranks[name], costs.get(name, 0), -len(self.workers[name].held))
            )
            for name in active[:surplus]:
                self._take(pods[name])

    def _create(self) -> None:
        name = f"{workers_name(self._queue.name)}-{next(self._numbers):03}"
        self.workers[name] = Worker(name)
        self._cluster.put(
            Kind.POD,
            {
                "metadata": {
                    "name": name,
                    "namespace": self._queue.namespace,
                    "labels": self._labels,
                },
                "spec": {"nodeName": "node"},
                "status": {"phase": "Pending"},
            },
        )

    def _take(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        self.taken.append(name)
        if self.workers[name].held:
            self.taken_busy.append(name)
        ends = self._clock.now() + timedelta(minutes=10)
        pod["metadata"]["deletionTimestamp"] = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
        self._cluster.put(Kind.POD, pod)

    def _show(self) -> None:
        """The controllers' reports."""
        found = self.deployment
        active = [pod for pod in self.pods if "deletionTimestamp" not in pod["metadata"]]
        self.most = max(self.most, len(self.pods))
        status = found.get("status", {})
        if not status.get("rolling"):
            status = {
                "observedGeneration": found["metadata"]["generation"],
                "replicas": len(active),
                "updatedReplicas": len(active),
            }
        self._cluster.put(Kind.DEPLOYMENT, {**found, "status": status})

    async def _work(self, worker: Worker) -> None:
        worker.age += 1
        pod = next(pod for pod in self.pods if pod["metadata"]["name"] == worker.pod)
        was_told, worker.told_to_end = worker.told_to_end, "deletionTimestamp" in pod["metadata"]
        ready = worker.age >= self._start and not worker.is_stuck
        if ready and not worker.is_cut_off:
            # The signal comes a round after the timestamp, as on a slow node.
            await self._exchange(worker, can_claim=not was_told)
        if worker.told_to_end and was_told and not worker.held:
            await self._broker.leave(self._queue, worker.incarnation)
            self.kill(worker.pod)
            return
        condition = {"type": "Ready", "status": str(ready)}
        pod["status"] = {"phase": "Running", "conditions": [condition]}
        self._cluster.put(Kind.POD, pod)

    async def _exchange(self, worker: Worker, *, can_claim: bool) -> None:
        if worker.age % 10 == self._start:
            presence = Presence(worker.incarnation, self._clock.now())
            await self._broker.beat(self._queue, presence, ttl=PRESENCE_TTL)
        done = [job for job, (_, ends) in worker.held.items() if ends <= self.second]
        settled = [Settlement(job, worker.held.pop(job)[0], Outcome.complete()) for job in done]
        leases = [(job, token) for job, (token, _) in worker.held.items()]
        await self._broker.renew(self._queue, worker.incarnation, leases)
        worker.sequence += 1
        want = self._slots - len(worker.held) if can_claim else 0
        reply = await self._broker.exchange(
            self._queue,
            ExchangeRequest(worker.incarnation, worker.sequence, want, tuple(settled)),
        )
        for job in reply.claimed:
            worker.held[job.id] = (job.token, self.second + self._service)


def _cost(pod: Object) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(DELETION_COST_ANNOTATION, "0"))
