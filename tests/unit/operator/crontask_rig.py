"""What the tests of CronTasks in a cluster share: reconciler, scheduler and queue on one clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from tests.support.fake_cluster import FakeCluster
from tests.unit.scheduler.rig import FlakyBroker
from tidework.broker.broker import Broker
from tidework.clock import ManualClock
from tidework.manifests import CronTaskStatus
from tidework.model.identity import QueueName
from tidework.model.lease import ExchangeRequest, Settlement
from tidework.model.outcome import Outcome
from tidework.scheduler.leadership import QueueLeadership
from tidework.scheduler.registry import CronRegistry
from tidework.scheduler.scheduler import Scheduler
from tidework.testing.memory.broker import MemoryBroker
from tidework_operator.cluster import Kind, Object
from tidework_operator.crontasks.reconcile import CronTaskReconciler
from tidework_operator.events import Events
from tidework_operator.inventory import Inventory

START = datetime(2026, 1, 5, 10, 0, 0, tzinfo=UTC)
SPACE = "shop"
QUEUE = QueueName(SPACE, "emails")


def moment(clock_time: str) -> str:
    """A time of the day on which the tests play, as the API server writes it."""
    return f"2026-01-05T{clock_time}Z"


class CronRig:
    """One leader. ``settle`` is one second of its loops without time passing."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.cluster = FakeCluster(self.clock)
        self.inventory = Inventory()
        self.memory = MemoryBroker(self.clock)
        self.broker = FlakyBroker(self.memory)
        broker = cast("Broker", self.broker)
        self.registry = CronRegistry()
        self.leadership = QueueLeadership(broker, lambda: self.registry.queues, "a")
        self.scheduler = Scheduler(broker, self.clock, self.registry, self.leadership)
        self.events = Events(self.cluster, self.clock, instance="op-0")
        self.reconciler = self.make_reconciler()
        self._sequence = 0

    def make_reconciler(self) -> CronTaskReconciler:
        """Another, as after a new lead."""
        return CronTaskReconciler(
            self.cluster,
            self.inventory,
            self.registry,
            self.scheduler,
            self.events,
            self.clock,
            jobs=cast("Broker", self.broker),
        )

    def put_queue(self, name: str = "emails", **spec: Any) -> None:
        metadata = {"namespace": SPACE, "name": name}
        self.cluster.put(Kind.TASK_QUEUE, {"metadata": metadata, "spec": {"app": "shop", **spec}})

    def put(self, name: str = "nightly", *, run_now: str = "", **spec: Any) -> Object:
        """A CronTask, every ten minutes unless it says when; its status stays."""
        says_when = {"schedule", "schedules", "every", "at"} & spec.keys()
        when = {} if says_when else {"schedule": "*/10 * * * *"}
        metadata: Object = {"namespace": SPACE, "name": name}
        if run_now:
            metadata["annotations"] = {"tidework.dev/run-now": run_now}
        found: Object = {
            "metadata": metadata,
            "spec": {"queue": "emails", "task": "send", **when, **spec},
        }
        held = next((o for o in self.crontasks() if o["metadata"]["name"] == name), None)
        if held is not None:
            metadata["generation"] = held["metadata"]["generation"]
            metadata["generation"] += held["spec"] != found["spec"]
            found["status"] = held.get("status", {})
        return self.cluster.put(Kind.CRON_TASK, found)

    def crontasks(self) -> list[Object]:
        return self.cluster.objects(Kind.CRON_TASK)

    async def relist(self) -> None:
        """The inventory learns what there is."""
        self.inventory.begin_relist()
        found = {kind: self.cluster.objects(kind) for kind in (Kind.TASK_QUEUE, Kind.CRON_TASK)}
        self.inventory.finish_relist(dict(found))

    async def settle(self) -> None:
        await self.relist()
        await self.reconciler.tick()
        await self.leadership.tick()
        while await self.scheduler.tick() <= timedelta(0):
            pass
        await self.reconciler.tick()

    async def run(self, seconds: int = 3) -> None:
        """Let time pass in steps of a second, as the loops would."""
        for _ in range(seconds):
            await self.settle()
            self.clock.advance(timedelta(seconds=1))
        await self.settle()

    def status(self, name: str = "nightly") -> dict[str, Any]:
        """The status that was written; it fits the CRD."""
        found = next(o for o in self.crontasks() if o["metadata"]["name"] == name)
        status: dict[str, Any] = found.get("status", {})
        if status:
            CronTaskStatus.model_validate(status, strict=False)
        return status

    def condition(self, type_: str, name: str = "nightly") -> tuple[str, str, str]:
        """Status, reason and message of a condition."""
        for found in self.status(name)["conditions"]:
            if found["type"] == type_:
                return found["status"], found["reason"], found["message"]
        raise AssertionError(f"no condition {type_}")

    def told(self) -> list[tuple[str, str]]:
        """Type and reason of all events."""
        found = self.cluster.objects(Kind.EVENT)
        return [(event["type"], event["reason"]) for event in found]

    def writes(self) -> int:
        """Patches of statuses so far."""
        return len(self.cluster.called("patch", Kind.CRON_TASK))

    async def claim(self) -> list[Settlement]:
        """Run what is ready, as a worker; each is settled by ``complete``."""
        self._sequence += 1
        reply = await self.memory.exchange(QUEUE, ExchangeRequest("w.1", self._sequence, 100))
        return [Settlement(job.id, job.token, Outcome.complete()) for job in reply.claimed]

    async def complete(self, settlements: list[Settlement]) -> None:
        self._sequence += 1
        request = ExchangeRequest("w.1", self._sequence, 0, tuple(settlements))
        await self.memory.exchange(QUEUE, request)
