"""One TaskQueue with its autoscaler, over a cluster, a broker and workers that are played."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.fake_cluster import FakeCluster
from tests.support.worker_fleet import WorkerFleet
from tidework.clock import ManualClock
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest, Settlement
from tidework.model.outcome import Outcome
from tidework.testing.memory.broker import MemoryBroker
from tidework_operator.autoscaling.loop import Autoscaler
from tidework_operator.cluster import Kind, Object
from tidework_operator.events import Events
from tidework_operator.inventory import Inventory
from tidework_operator.naming import (
    DELETION_COST_ANNOTATION,
    owned_by_taskqueue,
    worker_labels,
    worker_selector,
    workers_name,
)
from tidework_operator.observations import Observation, Observations

QUEUE = QueueName("shop", "emails")
UID = "0b1c"
AT_ONCE: dict[str, Any] = {
    "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    "idleSeconds": 5,
    "targetBacklogPerSlot": 1.0,
}


class FixedTerms:
    """Leads with one term until it is refused."""

    def __init__(self, term: int | None) -> None:
        self.held = term

    def term(self, queue: QueueName) -> int | None:
        return self.held

    def refuse(self, queue: QueueName, term: int) -> None:
        if self.held == term:
            self.held = None


class AutoscalingRig:
    """One TaskQueue with everything around it.

    spec:           fields of its spec, over ones that let the count fall at once
    service, late:  as WorkerFleet has them
    """

    def __init__(
        self, *, term: int | None = 1, service: int = 3, late: int = 1, **spec: Any
    ) -> None:
        self.clock = ManualClock(datetime(2026, 1, 5, 10, 0, tzinfo=UTC))
        self.cluster = FakeCluster(self.clock)
        self.broker = MemoryBroker(self.clock)
        self.inventory = Inventory()
        self.terms = FixedTerms(term)
        self.observations = Observations()
        self.change(**spec)
        self._create_deployment()
        self.fleet = WorkerFleet(
            self.cluster, self.broker, self.clock, QUEUE, UID, service=service, late=late
        )
        self.restart()

    def restart(self) -> None:
        """Another leader, who remembers nothing."""
        events = Events(self.cluster, self.clock, instance="test")
        self.autoscaler = Autoscaler(
            self.cluster,
            self.inventory,
            self.broker,
            self.terms,
            self.observations,
            events,
            self.clock,
        )

    def change(self, annotations: dict[str, str] | None = None, **spec: Any) -> None:
        """The TaskQueue becomes so."""
        metadata = {"name": QUEUE.name, "namespace": QUEUE.namespace, "uid": UID}
        body: Object = {
            "metadata": {**metadata, "annotations": annotations or {}},
            "spec": {"app": "shop.tasks", "image": "shop", "scaling": AT_ONCE} | spec,
        }
        self.inventory.note(Kind.TASK_QUEUE, self.cluster.put(Kind.TASK_QUEUE, body))

    def _create_deployment(self) -> None:
        self.cluster.put(
            Kind.DEPLOYMENT,
            {
                "metadata": {
                    "name": workers_name(QUEUE.name),
                    "namespace": QUEUE.namespace,
                    "labels": worker_labels(QUEUE.name, UID),
                    "ownerReferences": [owned_by_taskqueue(QUEUE.name, UID)],
                },
                "spec": {
                    "replicas": 0,
                    "selector": {"matchLabels": worker_selector(QUEUE.name)},
                    "template": {"metadata": {"labels": worker_labels(QUEUE.name, UID)}},
                },
                "status": {"observedGeneration": 1},
            },
        )

    async def put(self, jobs: int) -> None:
        """Jobs arrive."""
        await self.broker.enqueue(
            QUEUE, [Job(f"j{self.fleet.second}-{i}", "send", {}) for i in range(jobs)]
        )

    async def put_unknown(self) -> None:
        """A job of a task that a worker did not know: it was given back."""
        await self.broker.enqueue(QUEUE, [Job("typo", "sned", {})])
        reply = await self.broker.exchange(QUEUE, ExchangeRequest("earlier.1", 1, 1))
        (held,) = reply.claimed
        minute, hour = timedelta(minutes=1), timedelta(hours=1)
        outcome = Outcome.release_unknown(minute, hour, "unknown task 'sned'")
        settled = Settlement(held.id, held.token, outcome)
        await self.broker.exchange(QUEUE, ExchangeRequest("earlier.1", 2, 0, (settled,)))

    def have_version(self, version: str) -> None:
        """The Deployment gets a template of that version of the application."""
        deployment = self.fleet.deployment
        env = [{"name": "TIDEWORK_APP_VERSION", "value": version}]
        template = deployment["spec"]["template"]
        template["spec"] = {"containers": [{"name": "worker", "env": env}]}
        self.cluster.put(Kind.DEPLOYMENT, deployment)

    async def play(self, seconds: int) -> None:
        for _ in range(seconds):
            await self.fleet.step()
            await self.autoscaler.tick()

    async def play_until(self, holds: Callable[[], bool], most: int = 200) -> None:
        for _ in range(most):
            if holds():
                return
            await self.play(1)
        pytest.fail(f"after {most} s: {self.seen.scaling}, {self.replicas} replicas")

    @property
    def replicas(self) -> int:
        return int(self.fleet.deployment["spec"]["replicas"])

    @property
    def seen(self) -> Observation:
        found = self.observations.get(QUEUE)
        assert found is not None
        return found

    @property
    def why(self) -> str:
        assert self.seen.scaling is not None
        return self.seen.scaling.why

    @property
    def busy(self) -> int:
        """Pods whose workers hold leases."""
        return sum(bool(worker.held) for worker in self.fleet.workers.values())

    @property
    def marked(self) -> set[str]:
        return {
            pod["metadata"]["name"]
            for pod in self.fleet.pods
            if DELETION_COST_ANNOTATION in (pod["metadata"].get("annotations") or {})
        }

    async def unfinished(self) -> int:
        return (await self.broker.stats(QUEUE)).unfinished

    async def cordoned(self) -> set[str]:
        """Pods whose workers claim nothing."""
        found = set()
        for worker in self.fleet.workers.values():
            if (await self.broker.renew(QUEUE, worker.incarnation, [])).cordoned:
                found.add(worker.pod)
        return found
