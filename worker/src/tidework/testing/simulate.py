"""A queue and its replicas, played second by second under ``decide``: for tests and for planning.

Each second: jobs end, replicas become ready, jobs arrive and are claimed, then one decision is made
and applied as the operator applies it: surplus busy replicas are cordoned (no new claims) and leave
once they are idle, idle ones leave at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidework.manifests import TaskQueueSpec
from tidework.model.backlog import QueueLoad
from tidework.scaling.decide import decide
from tidework.scaling.decision import Decision, ReplicaStates, ScalingInput
from tidework.scaling.history import History


@dataclass(frozen=True, slots=True)
class Moment:
    """One second: what the decision saw, and the decision."""

    second: int
    backlog: int
    in_flight: int
    busy: int
    before: int
    decision: Decision


@dataclass(slots=True)
class _Replica:
    ready_at: int
    ends: list[int] = field(default_factory=list)
    cordoned: bool = False


def simulate(
    spec: TaskQueueSpec,
    arrivals: Sequence[int],
    *,
    service: int,
    start: int,
    seconds: int,
    replicas: int = 0,
) -> list[Moment]:
    """Play so many seconds.

    arrivals: jobs that arrive in each second, none after the last entry
    service:  seconds that each job runs; start: seconds that a replica needs before it can claim
    replicas: ready at the beginning
    """
    fleet = [_Replica(ready_at=0) for _ in range(replicas)]
    backlog = enqueued = 0
    history = History()
    moments = []
    for second in range(seconds):
        for replica in fleet:
            replica.ends = [end for end in replica.ends if end > second]
        arrived = arrivals[second] if second < len(arrivals) else 0
        backlog += arrived
        enqueued += arrived
        backlog -= _claim(fleet, backlog, second, spec.places, service)
        busy = {str(at): len(replica.ends) for at, replica in enumerate(fleet) if replica.ends}
        load = QueueLoad(
            backlog=backlog,
            due_soon=0,
            in_flight=sum(busy.values()),
            busy_workers=busy,
            oldest_age=0.0,
            next_due=None,
            enqueued=enqueued,
            service_time={"task": float(service)},
            now_ms=second * 1000,
        )
        decision = decide(_input(spec, load, fleet, second, history))
        moments.append(Moment(second, backlog, load.in_flight, len(busy), len(fleet), decision))
        history = decision.history
        _apply(fleet, decision, second + start)
    return moments


def _claim(fleet: list[_Replica], backlog: int, second: int, slots: int, service: int) -> int:
    """Let ready replicas claim, one job in turn; the number of jobs claimed."""
    claimed = 0
    able = [replica for replica in fleet if replica.ready_at <= second and not replica.cordoned]
    while claimed < backlog:
        able = [replica for replica in able if len(replica.ends) < slots]
        if not able:
            break
        for replica in able[: backlog - claimed]:
            replica.ends.append(second + service)
            claimed += 1
    return claimed


def _input(
    spec: TaskQueueSpec, load: QueueLoad, fleet: list[_Replica], second: int, history: History
) -> ScalingInput:
    starting = sum(replica.ready_at > second for replica in fleet)
    busy = len(load.busy_workers)
    return ScalingInput(
        load=load,
        now=float(second),
        replicas=len(fleet),
        states=ReplicaStates(starting, len(fleet) - starting - busy, busy),
        slots=spec.places,
        min_replicas=spec.min_replicas,
        max_replicas=spec.max_replicas,
        scaling=spec.scaling,
        history=history,
    )


def _apply(fleet: list[_Replica], decision: Decision, ready_at: int) -> None:
    # The least busy first, those that are still starting before all others.
    fleet.sort(key=lambda replica: (len(replica.ends), -replica.ready_at))
    del fleet[: max(0, len(fleet) - decision.replicas)]
    for place, replica in enumerate(fleet):
        replica.cordoned = place < len(fleet) - decision.drain_to
    fleet += [_Replica(ready_at) for _ in range(decision.replicas - len(fleet))]
