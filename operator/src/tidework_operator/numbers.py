"""The operator's numbers, read from its parts whenever Prometheus asks.

Read in the thread of the probes while the loop goes on: every container is copied first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidework.maintenance.upkeep import UpkeepCounters
from tidework.model.fire import Verdict
from tidework.model.identity import QueueName, is_dns_label
from tidework.scheduler.counters import LATENESS_BOUNDS, SchedulerCounters
from tidework_operator.cluster import Kind
from tidework_operator.inventory import KINDS, Inventory
from tidework_operator.leadership import ClusterLeadership, Election, WhileLeading
from tidework_operator.observations import Observations
from tidework_operator.probes import Number, Reading, Spread


@dataclass(frozen=True, slots=True)
class Parts:
    """What is read. loops: what only the leader does, by name."""

    version: str
    inventory: Inventory
    election: Election
    leadership: ClusterLeadership
    scheduler: SchedulerCounters
    upkeep: UpkeepCounters
    observations: Observations
    loops: dict[str, WhileLeading] = field(default_factory=dict)


def read_numbers(parts: Parts) -> Iterator[Reading]:
    """Every number as it is now."""
    yield Number("build_info", "Always 1", 1, {"version": parts.version})
    yield from _lead(parts)
    for kind in KINDS:
        count = len(parts.inventory.objects(kind))
        yield Number("objects", "Objects in the inventory", count, {"kind": kind.value.kind})
    for name, loop in parts.loops.items():
        which = {"loop": name}
        yield Number("rounds", "Rounds that succeeded", loop.rounds, which, is_sum=True)
        yield Number("round_failures", "Rounds that failed", loop.failures, which, is_sum=True)
        yield Number("round_seconds", "Time spent in rounds", loop.seconds, which, is_sum=True)
    yield from _fires(parts.scheduler)
    yield from _upkeep(parts.upkeep)
    wrong = parts.observations.wrong_victims
    yield Number("wrong_victims", "Pods taken instead of marked ones", wrong, is_sum=True)
    yield from _replicas(parts)


def _lead(parts: Parts) -> Iterator[Reading]:
    election, leadership = parts.election, parts.leadership
    yield Number("leader", "1 = this replica leads", election.leading)
    yield Number(
        "leader_confirmed",
        "1 = it leads, and the API server has said so within the renew deadline",
        election.is_confirmed,
    )
    yield Number("takeovers", "Times it became the leader", election.tenure, is_sum=True)
    yield Number("queues_led", "Queues over which it holds a term", len(leadership.led))
    refused = leadership.refusals
    yield Number("fenced_writes", "Writes refused for a stale term", refused, is_sum=True)


def _fires(counters: SchedulerCounters) -> Iterator[Reading]:
    for verdict in Verdict:
        count = counters.verdicts[verdict]
        which = {"verdict": verdict.value}
        yield Number("fires", "Fires by verdict", count, which, is_sum=True)
    yield Number("manual_runs", "Runs asked for by hand", counters.manual_runs, is_sum=True)
    yield Number(
        "failed_fire_rounds",
        "Rounds of a queue ended by trouble with Redis",
        counters.failed_rounds,
        is_sum=True,
    )
    lateness = counters.lateness
    yield Spread(
        "fire_lateness_seconds",
        "From a due instant to its job being visible in Redis",
        LATENESS_BOUNDS,
        tuple(lateness.buckets),
        lateness.seconds,
    )


def _upkeep(counters: UpkeepCounters) -> Iterator[Reading]:
    moved = {
        "promoted": counters.promoted,
        "reaped": counters.reaped,
        "buried": counters.buried,
        "pruned": counters.pruned,
        "dead_dropped": counters.dead_dropped,
    }
    for how, count in moved.items():
        yield Number("upkeep_jobs", "Jobs moved by upkeep", count, {"how": how}, is_sum=True)
    yield Number("upkeep_failures", "Failed upkeep calls", counters.failures, is_sum=True)


def _replicas(parts: Parts) -> Iterator[Reading]:
    if not parts.election.leading:
        return
    for found in parts.inventory.objects(Kind.TASK_QUEUE):
        metadata = found["metadata"]
        if not is_dns_label(metadata["name"]):
            continue
        queue = QueueName(metadata["namespace"], metadata["name"])
        seen = parts.observations.get(queue)
        if seen is None:
            continue
        which = {"namespace": queue.namespace, "queue": queue.name}
        if seen.deployment is not None:
            replicas = seen.deployment["spec"].get("replicas", 1)
            yield Number("replicas", "Replicas asked for", replicas, which)
        if seen.scaling is not None:
            wanted = seen.scaling.wanted
            yield Number("replicas_wanted", "Replicas that the load asks for", wanted, which)
        if seen.load is not None:
            yield Number("backlog", "Ready and due jobs", seen.load.backlog, which)
            text = "Jobs that wait for a worker that knows their task"
            yield Number("unknown_task_jobs", text, seen.load.unknown, which)
            age = seen.load.oldest_age
            yield Number("oldest_age_seconds", "Wait of the oldest job", age, which)
