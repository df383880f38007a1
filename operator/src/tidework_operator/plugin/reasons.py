"""``kubectl tidework why``: the number of replicas of a queue, explained in words. Pure.

Nothing is judged anew here: it is the operator's own reason, its conditions, and the pods as the
API server has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from tidework_operator.cluster import Object
from tidework_operator.plugin.tables import since, table

_NO_STATUS = (
    "no operator has looked at it yet: is one running, and does it watch this namespace? "
    "`kubectl get pods -A -l app.kubernetes.io/name=tidework-operator` shows"
)


def explain(queue: Object, pods: Sequence[Object], now: datetime) -> str:
    """Some lines. ``pods``: those of the queue's workers."""
    return "\n".join(_lines(queue, pods, now))


def _lines(queue: Object, pods: Sequence[Object], now: datetime) -> Iterator[str]:
    metadata, spec, status = queue["metadata"], queue.get("spec") or {}, queue.get("status") or {}
    name = f"{metadata['namespace']}/{metadata['name']}"
    if not status:
        yield f"TaskQueue {name}: {_NO_STATUS}"
        yield from _pods(pods, now)
        return
    yield f"TaskQueue {name}: {_replicas(spec, status)}"
    if status.get("why"):
        yield f"why: {status['why']}"
    yield f"jobs: {_jobs(status)}"
    if status.get("lastScaleTime"):
        yield f"last change: {since(status['lastScaleTime'], now)} ago"
    seen, written = status.get("observedGeneration"), metadata.get("generation")
    if seen is not None and written is not None and seen < written:
        yield (
            f"note: this is about generation {seen} of the spec; generation {written} was not "
            "looked at yet"
        )
    yield from _conditions(status)
    yield from _pods(pods, now)


def _replicas(spec: dict[str, Any], status: dict[str, Any]) -> str:
    there, wanted = status.get("replicas", 0), status.get("wantedReplicas")
    words = f"{there} {'replica' if there == 1 else 'replicas'}, {status.get('readyReplicas', 0)} "
    words += "ready"
    if wanted is not None:
        words += f", {wanted} wanted"
    if spec.get("replicas") is not None:
        return (
            f"{words}; pinned to {spec['replicas']} by spec.replicas (remove it to follow the load)"
        )
    least, most = spec.get("minReplicas", 0), spec.get("maxReplicas", 5)
    return f"{words} (minReplicas {least}, maxReplicas {most})"


def _jobs(status: dict[str, Any]) -> str:
    names = {"backlog": "waiting", "running": "running", "scheduled": "later", "dead": "dead"}
    words = ", ".join(f"{status.get(name, '?')} {word}" for name, word in names.items())
    age = status.get("oldestAgeSeconds")
    return f"{words}; the oldest has waited {age}s" if age else words


def _conditions(status: dict[str, Any]) -> Iterator[str]:
    rows = [
        (found["type"], found["status"], found["reason"], found.get("message", ""))
        for found in status.get("conditions") or ()
    ]
    if rows:
        yield ""
        yield table(("CONDITION", "STATUS", "REASON", "MESSAGE"), rows)


def _pods(pods: Sequence[Object], now: datetime) -> Iterator[str]:
    if not pods:
        return
    rows = [
        (
            pod["metadata"]["name"],
            *_state_of(pod),
            since(pod["metadata"].get("creationTimestamp"), now),
        )
        for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))
    ]
    yield ""
    yield table(
        ("POD", "STATE", "BECAUSE", "AGE"),
        [(name, state, why, age) for name, state, why, age in rows],
    )


def _state_of(pod: Object) -> tuple[str, str]:
    """A pod's state, and what it waits for."""
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        return "terminating", ""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return "unscheduled", str(condition.get("message") or condition.get("reason") or "")
    for container in (
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ):
        waiting = (container.get("state") or {}).get("waiting")
        if waiting:
            words = (waiting.get("reason"), waiting.get("message"))
            return "waiting", ": ".join(word for word in words if word)
    if any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    ):
        return "ready", ""
    return str(status.get("phase") or "starting").lower(), ""
