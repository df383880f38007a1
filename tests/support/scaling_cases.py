"""Short ways to write down queues, loads and moments for the autoscaler."""

from __future__ import annotations

from typing import Any

from tidework.manifests import API_VERSION, Scaling, TaskQueue, TaskQueueSpec, parse_document
from tidework.model.backlog import QueueLoad
from tidework.scaling import Decision, History, ReplicaStates, ScalingInput, decide


def queue_spec(**fields: Any) -> TaskQueueSpec:
    """A TaskQueue's spec from fields as documents write them."""
    document = {
        "apiVersion": API_VERSION,
        "kind": "TaskQueue",
        "metadata": {"name": "q"},
        "spec": {"app": "shop.tasks"} | fields,
    }
    parsed = parse_document(document)
    assert isinstance(parsed, TaskQueue)
    return parsed.spec


def scaling(**fields: Any) -> Scaling:
    return queue_spec(scaling=fields).scaling


def load(
    backlog: int = 0,
    in_flight: int = 0,
    *,
    due_soon: int = 0,
    service_time: dict[str, float] | None = None,
    paused: bool = False,
    unknown: int = 0,
    announced: str = "",
) -> QueueLoad:
    return QueueLoad(
        backlog=backlog,
        due_soon=due_soon,
        in_flight=in_flight,
        busy_workers={},
        oldest_age=0.0,
        next_due=None,
        enqueued=0,
        service_time=service_time or {},
        now_ms=0,
        paused=paused,
        unknown=unknown,
        unknown_task="sned" if unknown else "",
        announced=announced,
    )


class Replay:
    """Decisions one after the other, each with the history of the one before.

    The count that was decided is the count of the next moment, unless ``replicas`` says otherwise.
    """

    def __init__(
        self,
        rules: Scaling | None = None,
        *,
        replicas: int = 0,
        slots: int = 1,
        low: int = 0,
        high: int = 100,
    ) -> None:
        self.rules = rules or Scaling()
        self.replicas = replicas
        self.slots = slots
        self.low = low
        self.high = high
        self.history = History()

    def at(
        self,
        now: float,
        found: QueueLoad | None,
        *,
        busy: int = 0,
        draining: int = 0,
        prescale: int = 0,
        version: str = "",
    ) -> Decision:
        decision = decide(
            ScalingInput(
                load=found,
                now=now,
                replicas=self.replicas,
                states=ReplicaStates(0, max(0, self.replicas - busy), busy, draining),
                slots=self.slots,
                min_replicas=self.low,
                max_replicas=self.high,
                scaling=self.rules,
                prescale=prescale,
                app_version=version,
                error="" if found is not None else "redis is away",
                history=self.history,
            )
        )
        self.history = decision.history
        self.replicas = decision.replicas
        return decision
