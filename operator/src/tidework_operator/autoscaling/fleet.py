"""A queue's Deployment and pods at one moment, read from the API server's objects and from Redis.

Pods are ranked as the ReplicaSet controller ranks its victims: nothing that is asked of it can make
it take a pod before all pods of lower ranks. Only within a rank does the deletion cost decide.
(kubernetes, pkg/controller/controller_utils.go, ActivePodsWithRanks)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

from tidework.manifests.worker_environment import APP_VERSION_VARIABLE
from tidework.model.backlog import Cordon, Presence
from tidework.scaling import ReplicaStates
from tidework_operator.cluster import Object
from tidework_operator.naming import DELETION_COST_ANNOTATION, pod_of

LOST_AFTER = timedelta(seconds=30)
"""A pod that is still there so long after the end of its grace is lost with its node."""


class Rank(IntEnum):
    """The lower, the earlier the ReplicaSet controller takes it."""

    UNASSIGNED = 0
    PENDING = 1
    UNKNOWN = 2
    NOT_READY = 3
    READY = 4


@dataclass(frozen=True, slots=True)
class WorkerPod:
    """One pod.

    terminating: it has a deletion timestamp; lost: and should have been gone long ago
    marked:      it carries a negative deletion cost
    incarnation: of its worker by the latest presence, '' without one
    leases:      that its worker holds, those of its earlier incarnations included
    unwanted:    a person has its worker claim nothing more: it goes before others of its rank
    """

    name: str
    rank: Rank
    terminating: bool = False
    lost: bool = False
    marked: bool = False
    incarnation: str = ""
    leases: int = 0
    unwanted: bool = False

    @property
    def is_ready(self) -> bool:
        """Is its worker able to claim?"""
        return self.rank is Rank.READY


@dataclass(frozen=True, slots=True)
class Fleet:
    """The replicas of one queue.

    replicas: that the Deployment asks for
    rolling:  a change of the Deployment is still under way
    pods:     all that are not ended
    app_version: of the application, as new pods are told; '' = nobody knows
    """

    replicas: int
    rolling: bool
    pods: tuple[WorkerPod, ...]
    app_version: str = ""

    @property
    def active(self) -> tuple[WorkerPod, ...]:
        """Those that the ReplicaSet controller counts: the ones not terminating."""
        return tuple(pod for pod in self.pods if not pod.terminating)

    @property
    def states(self) -> ReplicaStates:
        active = self.active
        busy = sum(pod.leases > 0 for pod in active)
        starting = sum(pod.leases == 0 and not pod.is_ready for pod in active)
        return ReplicaStates(
            starting=starting,
            idle=len(active) - busy - starting,
            busy=busy,
            draining=sum(pod.terminating and not pod.lost for pod in self.pods),
        )


def read_fleet(
    deployment: Object,
    pods: Sequence[Object],
    workers: Sequence[Presence],
    leases: Mapping[str, int],
    now: datetime,
) -> Fleet:
    """The fleet of one queue. leases: incarnation -> how many it holds."""
    seen = [worker for worker in workers if not worker.is_stale]
    latest = _latest_incarnations(seen, leases)
    unwanted = {worker.incarnation for worker in seen if Cordon.PERSON in worker.cordon}
    held: dict[str, int] = {}
    for incarnation, count in leases.items():
        held[pod_of(incarnation)] = held.get(pod_of(incarnation), 0) + count
    return Fleet(
        replicas=deployment["spec"].get("replicas", 1),
        rolling=is_rolling(deployment),
        pods=tuple(
            _read_pod(pod, latest, held, unwanted, now) for pod in pods if not _has_ended(pod)
        ),
        app_version=_app_version_of(deployment),
    )


def _app_version_of(deployment: Object) -> str:
    """What pods of the Deployment are told to be the version of their application; '' if nothing
    is, or something that cannot be known from here."""
    template = deployment["spec"].get("template", {}).get("spec", {})
    for container in template.get("containers") or ():
        for variable in container.get("env") or ():
            if variable["name"] == APP_VERSION_VARIABLE:
                return str(variable.get("value") or "")
    return ""


def is_rolling(deployment: Object) -> bool:
    """Is the Deployment replacing pods, or has its controller not seen its last change?"""
    status = deployment.get("status", {})
    if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
        return True
    return bool(status.get("updatedReplicas", 0) != status.get("replicas", 0))


def _latest_incarnations(workers: Sequence[Presence], holders: Collection[str]) -> dict[str, str]:
    """pod -> incarnation. One that holds leases counts until its first presence is seen."""
    found = {pod_of(incarnation): incarnation for incarnation in holders}
    ordered = sorted(workers, key=lambda worker: worker.seen_at)
    return found | {pod_of(worker.incarnation): worker.incarnation for worker in ordered}


def _read_pod(
    pod: Object,
    latest: Mapping[str, str],
    held: Mapping[str, int],
    unwanted: Collection[str],
    now: datetime,
) -> WorkerPod:
    metadata = pod["metadata"]
    name = metadata["name"]
    deadline = metadata.get("deletionTimestamp")
    return WorkerPod(
        name=name,
        rank=_rank(pod),
        terminating=deadline is not None,
        lost=deadline is not None and now > datetime.fromisoformat(deadline) + LOST_AFTER,
        marked=_is_marked(metadata.get("annotations") or {}),
        incarnation=latest.get(name, ""),
        leases=held.get(name, 0),
        unwanted=latest.get(name, "") in unwanted,
    )


def _has_ended(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _rank(pod: Object) -> Rank:
    status = pod.get("status", {})
    if not pod.get("spec", {}).get("nodeName"):
        return Rank.UNASSIGNED
    match status.get("phase", "Pending"):
        case "Pending":
            return Rank.PENDING
        case "Unknown":
            return Rank.UNKNOWN
    ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
    return Rank.READY if ready else Rank.NOT_READY


def _is_marked(annotations: Mapping[str, str]) -> bool:
    try:
        return int(annotations.get(DELETION_COST_ANNOTATION, "0")) < 0
    except ValueError:
        return False
