"""From a decision to the next step in the cluster. Pure: a frozen moment in, actions out.

Growing is one patch. Shrinking takes several rounds, and everything between them lies in the
cluster and in Redis, so that another leader goes on where this one ended:
1. ``cordon`` says whom drain.lua is to keep from claiming, and reads their leases in that step.
2. A pod that is cordoned and holds no lease is free. Free pods are marked with a negative deletion
   cost, only as many as are to go.
3. Marks that the ReplicaSet controller has had time to see are followed by the smaller count.
Invariant: the count is lowered by no more pods than are free and come first in the controller's
order, so no pod with a lease is taken. What cannot be told to be safe waits for the next round.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tidework.scaling import Decision
from tidework_operator.autoscaling.fleet import Fleet, Rank, WorkerPod

SETTLE_S = 2.0
"""The ReplicaSet controller acts on a cache: a mark that is younger may not be in it yet
(https://github.com/kubernetes/kubernetes/issues/126138)."""

SILENT_S = 15.0
"""A ready pod without presence for so long has lost Redis: there is no worker left to cordon."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Ask the Deployment for ``replicas``; ``victims``: the pods that should go, by name."""

    replicas: int
    victims: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Mark:
    """Give the pod a negative deletion cost."""

    pod: str


@dataclass(frozen=True, slots=True)
class Unmark:
    """Take the deletion cost off the pod again."""

    pod: str


MARKS_PER_ROUND = 50
"""Each is a request; other queues are not to wait for hundreds of them."""

Action = Scale | Mark | Unmark


@dataclass(frozen=True, slots=True)
class Seen:
    """What this leader remembers, by its monotonic clock. It only ever delays a step.

    marked, silent: pod -> since when it carries a mark, or is ready without presence
    unmarked:       when a mark was last taken off
    cordoned:       incarnations that the last call cordoned; they stay first among equals
    """

    marked: Mapping[str, float] = field(default_factory=dict)
    silent: Mapping[str, float] = field(default_factory=dict)
    unmarked: float = float("-inf")
    cordoned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Plan:
    """The actions of one round, in order; ``waiting``: why a wanted scale-down waits, '' if not."""

    actions: tuple[Action, ...] = ()
    waiting: str = ""


def cordon(fleet: Fleet, decision: Decision, seen: Seen, now: float) -> tuple[str, ...]:
    """The incarnations to keep from claiming now; all others may claim (again).

    As many as there are pods too many, not replicas: victims stay cordoned until they are gone,
    also while they terminate and their worker may not have been told yet. Those that the
    controller would take first come first, busy or not; among equals those whom a person has
    claim nothing more, then the least busy.
    """
    leaving = [pod.incarnation for pod in fleet.pods if pod.terminating and pod.leases == 0]
    staying = []
    if not fleet.rolling or decision.drain_to == 0:
        first = sorted(fleet.active, key=lambda pod: _cordon_order(pod, seen, now))
        staying = [pod.incarnation for pod in first[: max(0, len(first) - decision.drain_to)]]
    return tuple(incarnation for incarnation in (*staying, *leaving) if incarnation)


def _cordon_order(pod: WorkerPod, seen: Seen, now: float) -> tuple[object, ...]:
    return (
        pod.rank,
        not _has_no_worker(pod, seen, now),
        not pod.unwanted,
        pod.leases,
        pod.incarnation not in seen.cordoned,
        not pod.marked,
        pod.name,
    )


def plan(
    fleet: Fleet, decision: Decision, cordoned: Mapping[str, int], seen: Seen, now: float
) -> Plan:
    """The actions of this round.

    cordoned: incarnation -> leases, as Broker.drain answered when told what ``cordon`` says
    """
    if decision.replicas > fleet.replicas:
        return Plan((Scale(decision.replicas), *_unmark_all(fleet)))
    if decision.drain_to >= fleet.replicas:
        # Pods beyond the count are about to be taken: their marks have to stay until then.
        leaving = len(fleet.active) > fleet.replicas and not fleet.rolling
        return Plan(() if leaving else _unmark_all(fleet))
    return _shrink(fleet, decision.drain_to, cordoned, seen, now)


def _shrink(fleet: Fleet, target: int, cordoned: Mapping[str, int], seen: Seen, now: float) -> Plan:
    active = fleet.active
    free = {pod.name for pod in active if _is_free(pod, cordoned, seen, now)}
    if target == 0 and len(free) == len(active):
        # All of them go: there is no wrong choice, not even during a rollout that got stuck.
        return Plan((Scale(0, frozenset(free)),))
    if fleet.rolling:
        return Plan(_unmark_all(fleet), "a rollout is under way")
    if len(active) > fleet.replicas:
        return Plan((), f"{len(active) - fleet.replicas} pods of the last step are still there")
    victims, in_the_way = _choose(active, free, len(active) - target)
    actions: list[Action] = [
        Unmark(pod.name) for pod in active if pod.marked and pod.name not in victims
    ]
    marks = [Mark(pod.name) for pod in active if not pod.marked and pod.name in victims]
    actions += marks[:MARKS_PER_ROUND]
    ripe = {name for name in victims if now - seen.marked.get(name, now) >= SETTLE_S}
    if any(isinstance(action, Unmark) for action in actions) or now - seen.unmarked < SETTLE_S:
        # The controller may still believe in a mark that was taken off.
        ripe = set()
    count = max(target, len(active) - len(ripe))
    if count < fleet.replicas:
        actions.append(Scale(count, frozenset(ripe)))
    return Plan(tuple(actions), _waiting(len(active) - target, victims, ripe, in_the_way))


def _choose(
    active: tuple[WorkerPod, ...], free: set[str], surplus: int
) -> tuple[frozenset[str], WorkerPod | None]:
    """The victims, and the pod that keeps the controller from reaching further ones, if any.

    Rank by rank: the next one is reached only if the whole of this one goes.
    """
    victims: list[str] = []
    for _, pods in _by_rank(active):
        left = surplus - len(victims)
        takeable = sorted(
            (pod for pod in pods if pod.name in free),
            key=lambda pod: (not pod.unwanted, not pod.marked, pod.name),
        )
        victims += [pod.name for pod in takeable[: max(0, left)]]
        if len(takeable) < len(pods):
            stands = next(pod for pod in pods if pod.name not in free)
            return frozenset(victims), stands
    return frozenset(victims), None


def _by_rank(active: tuple[WorkerPod, ...]) -> Iterator[tuple[Rank, list[WorkerPod]]]:
    ordered = sorted(active, key=lambda pod: pod.rank)
    for rank, pods in itertools.groupby(ordered, key=lambda pod: pod.rank):
        yield rank, list(pods)


def _is_free(pod: WorkerPod, cordoned: Mapping[str, int], seen: Seen, now: float) -> bool:
    if pod.leases:
        return False
    if _has_no_worker(pod, seen, now):
        return True
    return cordoned.get(pod.incarnation) == 0


def _has_no_worker(pod: WorkerPod, seen: Seen, now: float) -> bool:
    """It has not started, or lost Redis for good: it holds nothing and cannot be told anything."""
    if pod.incarnation or pod.leases:
        return False
    if not pod.is_ready:
        return True
    since = seen.silent.get(pod.name)
    return since is not None and now - since >= SILENT_S


def _unmark_all(fleet: Fleet) -> tuple[Action, ...]:
    return tuple(Unmark(pod.name) for pod in fleet.active if pod.marked)


def _waiting(
    surplus: int, victims: frozenset[str], ripe: set[str], in_the_way: WorkerPod | None
) -> str:
    if len(ripe) >= surplus:
        return ""
    if len(victims) >= surplus:
        return "the ReplicaSet controller is given time to see the marks"
    if in_the_way is not None and not in_the_way.is_ready:
        return f"pod {in_the_way.name} is not ready, but its worker may hold jobs"
    return "cordoned workers finish their jobs"
