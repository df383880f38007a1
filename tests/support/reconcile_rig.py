"""One TaskQueue with its reconciler and a cluster in memory; the autoscaler's look is played."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.fake_cluster import FakeCluster
from tidework.clock import ManualClock
from tidework.model.identity import QueueName
from tidework_operator.cluster import Kind, Object
from tidework_operator.events import Events
from tidework_operator.inventory import Inventory
from tidework_operator.observations import Observation, Observations, ScalingReport
from tidework_operator.taskqueues.reconcile import TaskQueueReconciler

QUEUE = QueueName("shop", "emails")
UID = "6b1c"
NAME = "tw-emails"
FOLLOWS = ScalingReport(wanted=0, why="nothing waiting or running -> 0")


class ReconcileRig:
    """One TaskQueue, its operator, and an autoscaler that is played."""

    def __init__(self, **spec: Any) -> None:
        self.clock = ManualClock(datetime(2026, 1, 5, 10, 0, tzinfo=UTC))
        self.cluster = FakeCluster(self.clock)
        self.inventory = Inventory()
        self.observations = Observations()
        self.cluster.watchers.append(self._watch)
        self.scaling: ScalingReport | None = FOLLOWS
        self.change(**spec)
        self.restart()

    def _watch(self, kind: Kind, change: str, found: Object) -> None:
        if kind is Kind.TASK_QUEUE:
            self.inventory.note(kind, found, deleted=change == "DELETED")

    def restart(self) -> None:
        """Another operator, who remembers nothing."""
        events = Events(self.cluster, self.clock, instance="test")
        self.reconciler = TaskQueueReconciler(
            self.cluster, self.inventory, self.observations, events, self.clock
        )

    def change(self, **spec: Any) -> None:
        """The spec becomes so; fields that are None are left out."""
        whole = {"app": "shop.tasks", "image": "shop:1"} | spec
        body: Object = {
            "metadata": {"name": QUEUE.name, "namespace": QUEUE.namespace, "uid": UID},
            "spec": {name: value for name, value in whole.items() if value is not None},
        }
        held = self.cluster.objects(Kind.TASK_QUEUE)
        if held and "status" in held[0]:
            body["status"] = held[0]["status"]
        self.cluster.put(Kind.TASK_QUEUE, body)

    def observe(self, *pods: Object, **more: Any) -> None:
        """What the autoscaler's round would see."""
        found = [found for found in self.cluster.objects(Kind.DEPLOYMENT) if is_ours(found)]
        seen = Observation(found[0] if found else None, pods, scaling=self.scaling, **more)
        self.observations.put(QUEUE, seen)

    async def round(self, *pods: Object, seconds: float = 1.0, **more: Any) -> None:
        self.clock.advance(timedelta(seconds=seconds))
        self.observe(*pods, **more)
        await self.reconciler.tick()

    def child(self, kind: Kind) -> Object:
        (found,) = self.cluster.objects(kind)
        return found

    @property
    def deployment(self) -> Object:
        return self.child(Kind.DEPLOYMENT)

    @property
    def status(self) -> Object:
        found: Object = self.child(Kind.TASK_QUEUE)["status"]
        return found

    def condition(self, type_: str = "Ready") -> tuple[str, str, str]:
        """Status, reason, message."""
        found = next(each for each in self.status["conditions"] if each["type"] == type_)
        return found["status"], found["reason"], found["message"]

    def writes(self) -> list[str]:
        """Every request that changes something, since the last call."""
        found = [call for call in self.cluster.calls if not call.startswith(("get", "list"))]
        self.cluster.calls.clear()
        return [call for call in found if " events " not in call]

    def events(self) -> list[tuple[str, str]]:
        found = self.cluster.objects(Kind.EVENT)
        return sorted((event["type"], event["reason"]) for event in found)


def is_ours(found: Object) -> bool:
    owners = found["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == UID for owner in owners)
