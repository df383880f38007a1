"""Why workers do not start, from the Deployment's conditions and the pods. Pure.

One problem is told, the first of this order that some pod has: nothing below it can be judged
before it is mended. The words are those of the kubelet and the scheduler, with the remedy added;
what comes and goes while a pod goes round in circles (names of back-offs, counts) is left out, so
that the same problem reads the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tidework_operator.cluster import Object
from tidework_operator.naming import REDIS_SECRET_KEY, redis_secret
from tidework_operator.observations import Trouble

STUCK_AFTER = timedelta(minutes=2)
"""Creating a container takes longer than this only if something is missing."""

CIRCLES = 2
"""A container that is not ready after so many restarts goes round in circles."""

_IMAGE = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
    | {"ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}
)
_CONFIG = frozenset({"CreateContainerConfigError"})
_START = frozenset({"CreateContainerError", "RunContainerError", "PostStartHookError"})
_MISCONFIGURED = 2
_LONGEST_SAYING = 400

Container = Mapping[str, Any]


def find_problem(
    deployment: Object | None, pods: Sequence[Object], connection: str, now: datetime
) -> Trouble | None:
    """The problem that keeps workers from starting; None if there is none.

    connection: name of the queue's Redis connection
    """
    refused = _refused(deployment)
    if refused is not None:
        return refused
    alive = [pod for pod in pods if _is_alive(pod)]
    looks: tuple[Callable[[Object], Trouble | None], ...] = (
        lambda pod: _config(pod, connection),
        _image,
        _start,
        _circles,
        _unschedulable,
        lambda pod: _stuck(pod, now),
    )
    for look in looks:
        found = [trouble for pod in alive if (trouble := look(pod)) is not None]
        if found:
            return _counted(found, len(alive))
    return _stalled(deployment)


def _counted(found: list[Trouble], alive: int) -> Trouble:
    return Trouble(found[0].reason, f"{len(found)} of {alive} pods: {found[0].message}")


def _refused(deployment: Object | None) -> Trouble | None:
    """The API server does not let the ReplicaSet controller create pods."""
    condition = _condition(deployment, "ReplicaFailure")
    if condition is None or condition.get("status") != "True":
        return None
    said = _said(condition.get("message"))
    if "exceeded quota" in said or "failed quota" in said:
        return Trouble(
            "QuotaExceeded",
            f"no further pods: {said}; raise the ResourceQuota of the namespace, or lower "
            "spec.maxReplicas or spec.resources",
        )
    if "PodSecurity" in said:
        return Trouble(
            "PodSecurityViolated",
            f"pods are refused: {said}; remove what the namespace forbids from spec.template",
        )
    return Trouble(
        "PodsRefused", f"pods are refused: {said}; correct the spec or the policy it names"
    )


def _stalled(deployment: Object | None) -> Trouble | None:
    condition = _condition(deployment, "Progressing")
    if condition is None or condition.get("status") != "False":
        return None
    return Trouble(
        "RolloutStalled",
        f"{_said(condition.get('message'))}; see kubectl describe pod for what they wait for",
    )


def _config(pod: Object, connection: str) -> Trouble | None:
    said = _waits_for(pod, _CONFIG)
    if said is None:
        return None
    namespace, secret = pod["metadata"]["namespace"], redis_secret(connection)
    if secret in said:
        return Trouble(
            "RedisSecretMissing",
            f"{said}; workers find Redis in Secret {secret} of their own namespace: kubectl -n "
            f"{namespace} create secret generic {secret} "
            f"--from-literal={REDIS_SECRET_KEY}=redis://USER:PASSWORD@HOST:PORT/DB",
        )
    if "runAsNonRoot" in said:
        return Trouble(
            "ImageRunsAsRoot",
            f"{said}; give the image a numeric USER other than 0, or set runAsUser in "
            "spec.template.spec.securityContext",
        )
    return Trouble(
        "ContainerConfigError",
        f"{said}; create what is missing, or correct spec.env and spec.template",
    )


def _image(pod: Object) -> Trouble | None:
    said = _waits_for(pod, _IMAGE)
    if said is None:
        return None
    images = ", ".join(_images(pod))
    return Trouble(
        "ImagePullFailed",
        f"image {images} cannot be pulled: {said}; correct spec.image, make the image available to "
        "the nodes, or name a pull secret in spec.template.spec.imagePullSecrets",
    )


def _start(pod: Object) -> Trouble | None:
    said = _waits_for(pod, _START)
    if said is None:
        return None
    return Trouble(
        "ContainerStartFailed",
        f"{said}; the image has to bring the program that spec.command and spec.args name",
    )


def _circles(pod: Object) -> Trouble | None:
    for container in _containers(pod):
        state = container.get("state") or {}
        ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated")
        backs_off = (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff"
        circles = container.get("restartCount", 0) >= CIRCLES and not container.get("ready")
        if ended and (backs_off or circles):
            return Trouble("CrashLoop", _ending(pod, container, ended))
    return None


def _ending(pod: Object, container: Container, ended: Mapping[str, Any]) -> str:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    code, said = ended.get("exitCode"), _said(_last_words(ended.get("message")))
    logs = f"see kubectl -n {namespace} logs --previous {name} -c {container['name']}"
    if ended.get("reason") == "OOMKilled":
        return (
            "the container runs out of memory (OOMKilled) and is started again and again; raise "
            f"spec.resources.limits.memory, or lower spec.slots or spec.asyncSlots; {logs}"
        )
    why = f": {said}" if said else ""
    if code == _MISCONFIGURED:
        return f"the worker cannot start as configured (exit code 2){why}; {logs}"
    return f"the container ends with exit code {code} and is started again and again{why}; {logs}"


def _unschedulable(pod: Object) -> Trouble | None:
    condition = _condition(pod, "PodScheduled")
    if condition is None or condition.get("status") == "True":
        return None
    if condition.get("reason") != "Unschedulable":
        return None
    return Trouble(
        "Unschedulable",
        f"no node takes them: {_said(condition.get('message'))}; add or free nodes, or lower "
        "spec.resources.requests, or correct nodeSelector, affinity and tolerations of "
        "spec.template",
    )


def _stuck(pod: Object, now: datetime) -> Trouble | None:
    condition = _condition(pod, "PodScheduled")
    if condition is None or condition.get("status") != "True":
        return None
    creating = _waits_for(pod, frozenset({"ContainerCreating", "PodInitializing"}))
    since = condition.get("lastTransitionTime")
    if creating is None or since is None or now - datetime.fromisoformat(since) < STUCK_AFTER:
        return None
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    return Trouble(
        "ContainerNotCreated",
        f"their containers are not created for minutes, as with a volume that is missing; see "
        f"kubectl -n {namespace} describe pod {name}",
    )


def _is_alive(pod: Object) -> bool:
    ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return not ended and "deletionTimestamp" not in pod["metadata"]


def _containers(pod: Object) -> Iterator[Container]:
    status = pod.get("status", {})
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _images(pod: Object) -> list[str]:
    return [
        container.get("image", "")
        for container in _containers(pod)
        if ((container.get("state") or {}).get("waiting") or {}).get("reason") in _IMAGE
    ]


def _waits_for(pod: Object, reasons: frozenset[str]) -> str | None:
    """What the kubelet says of the first container that waits for one of these reasons."""
    for container in _containers(pod):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in reasons:
            return _said(waiting.get("message")) or str(waiting["reason"])
    return None


def _condition(found: Object | None, type_: str) -> Mapping[str, Any] | None:
    for condition in ((found or {}).get("status") or {}).get("conditions") or ():
        if condition.get("type") == type_:
            read: Mapping[str, Any] = condition
            return read
    return None


def _last_words(text: str | None) -> str:
    """What the end of a log says at last: of a line of ours without time, process and worker."""
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    if not lines:
        return ""
    try:
        line = json.loads(lines[-1])
    except ValueError:
        return lines[-1]
    return str(line["message"]) if isinstance(line, dict) and "message" in line else lines[-1]


def _said(text: str | None) -> str:
    """On one line, of a readable length, without what changes from pod to pod or try to try."""
    words = " ".join((text or "").split())
    words = re.sub(r"^Back-off pulling image \S+?: (ErrImagePull: )?", "", words)
    words = re.sub(r'^pods "[^"]*" is forbidden: ', "", words)
    words = re.sub(r' \(pod: "[^"]*", container: [^)]*\)', "", words)
    return words if len(words) <= _LONGEST_SAYING else f"{words[: _LONGEST_SAYING - 3]}..."
