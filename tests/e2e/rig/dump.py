"""What a failed test shows of the cluster: objects, events, pods that are not well, their logs.

It never fails itself: what can't be had is told in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.commands import CommandError

OBJECTS = "deployments,replicasets,pods,services,persistentvolumeclaims"
EVENTS = 40
LOG_LINES = "40"


def dump(cluster: Cluster, namespaces: list[str]) -> str:
    """A text about each namespace."""
    return "\n".join(part for name in namespaces for part in _parts(cluster, name)) or "(nothing)"


def _parts(cluster: Cluster, namespace: str) -> Iterator[str]:
    here = ("--namespace", namespace)
    yield f"======== namespace {namespace}"
    yield _ask(cluster, "get", OBJECTS, "--output", "wide", *here)
    yield _ask(cluster, "get", "tidework", "--output", "yaml", *here)
    events = _ask(cluster, "get", "events", "--sort-by", ".metadata.creationTimestamp", *here)
    yield "\n".join(["-------- events", *events.splitlines()[-EVENTS:]])
    for pod in _pods(cluster, namespace):
        name = pod["metadata"]["name"]
        if not _is_well(pod):
            yield f"-------- describe pod {name}"
            yield _ask(cluster, "describe", "pod", name, "--show-events=false", *here)
        logs = ("logs", name, "--all-containers", "--prefix", "--tail", LOG_LINES, *here)
        yield f"-------- logs of {name}"
        yield _ask(cluster, *logs)
        if any(status.get("restartCount") for status in _containers(pod)):
            yield f"-------- logs of {name} before it was started again"
            yield _ask(cluster, *logs, "--previous")


def _ask(cluster: Cluster, *arguments: str) -> str:
    try:
        return cluster.kubectl(*arguments, within=20).rstrip()
    except CommandError as error:
        return f"({error})"


def _pods(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    try:
        pods = cluster.kubectl_json("get", "pods", "--namespace", namespace, within=20)
    except CommandError:
        return []
    items: list[dict[str, Any]] = pods["items"]
    return items


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    statuses: list[dict[str, Any]] = pod["status"].get("containerStatuses", [])
    return statuses


def _is_well(pod: dict[str, Any]) -> bool:
    """Succeeded, or every container ready."""
    statuses = _containers(pod)
    ready = bool(statuses) and all(status["ready"] for status in statuses)
    return ready or pod["status"].get("phase") == "Succeeded"
