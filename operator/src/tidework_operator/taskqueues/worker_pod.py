"""The pod of a worker: what a TaskQueue says, over defaults that Pod Security `restricted` takes.

What the TaskQueue adds by ``spec.template`` is merged field by field; labels, variables and the
mounts that the operator needs win, but for a place where the TaskQueue mounts something itself.

The URL of Redis comes twice. As a variable it is there from the start, and its Secret's absence
is told by the kubelet. As a file it is renewed with the Secret, so that a worker outlives that.
"""

from __future__ import annotations

import hashlib
import json

from tidework.manifests import TaskQueue
from tidework.manifests.worker_environment import APP_VERSION_VARIABLE, worker_environment
from tidework_operator.cluster import Object
from tidework_operator.naming import (
    PROBE_PORT,
    REDIS_SECRET_KEY,
    redis_secret,
    worker_labels,
    workers_name,
)

CONTAINER = "worker"
COMMAND = ("tidework", "worker")

RELEASE_S = 15
"""What a worker has beyond its grace to release its jobs and end, before SIGKILL."""

LIVENESS_GRACE_S = 10
"""A worker whose loop stands still will not drain: its end must not take the drain's long grace."""

_TMP = "/tmp"  # noqa: S108 - in the container
_TMP_VOLUME = "tidework-tmp"
_REDIS = "/etc/tidework/redis"
_REDIS_VOLUME = "tidework-redis"


def pod_template(queue: TaskQueue) -> Object:
    """The template of the Deployment."""
    metadata = queue.metadata
    given = queue.spec.template.metadata
    own = worker_labels(metadata.name, metadata.uid)
    found: Object = {"labels": {**given.labels, **own}}
    if given.annotations:
        found["annotations"] = dict(given.annotations)
    template = {"metadata": found, "spec": _pod_spec(queue)}
    _note_version(template)
    return template


def _note_version(template: Object) -> None:
    """Whatever makes a rollout makes another version, unless the TaskQueue names its own."""
    variables = template["spec"]["containers"][0]["env"]
    if all(variable["name"] != APP_VERSION_VARIABLE for variable in variables):
        text = json.dumps(template, sort_keys=True)
        version = hashlib.sha256(text.encode()).hexdigest()[:12]
        variables.append({"name": APP_VERSION_VARIABLE, "value": version})


def termination_grace_s(queue: TaskQueue) -> int:
    """From SIGTERM to SIGKILL: the grace of the worker (WorkerSettings.grace) and a rest."""
    spec = queue.spec
    return min(spec.hard_timeout_seconds + 10, spec.max_grace_seconds) + RELEASE_S


def _pod_spec(queue: TaskQueue) -> Object:
    spec = queue.spec.template.spec
    mounts = spec.model_dump(mode="json")["volume_mounts"]
    taken = {mount.get("mountPath") for mount in mounts}
    volumes: list[Object] = []
    if _TMP not in taken:
        volumes.append({"name": _TMP_VOLUME, "emptyDir": {}})
        mounts.append({"name": _TMP_VOLUME, "mountPath": _TMP})
    if _REDIS not in taken:
        # Optional: a Secret that is deleted must not keep pods from starting without a word.
        secret = {"secretName": redis_secret(queue.spec.redis), "optional": True}
        volumes.append({"name": _REDIS_VOLUME, "secret": secret})
        mounts.append({"name": _REDIS_VOLUME, "mountPath": _REDIS, "readOnly": True})
    given = spec.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        exclude_defaults=True,
        exclude={
            "volumes",
            "volume_mounts",
            "env_from",
            "security_context",
            "container_security_context",
        },
    )
    return {
        **given,
        "serviceAccountName": workers_name(queue.metadata.name),
        "automountServiceAccountToken": False,
        # Variables named after Services would be taken for settings: TIDEWORK_...
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": termination_grace_s(queue),
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            **(spec.security_context or {}),
        },
        "volumes": [*spec.volumes, *volumes],
        "containers": [_container(queue, mounts)],
    }


def _container(queue: TaskQueue, mounts: list[Object]) -> Object:
    spec = queue.spec
    overlay = spec.template.spec
    container: Object = {
        "name": CONTAINER,
        "image": spec.image,
        "env": _environment(queue),
        "ports": [{"name": "probes", "containerPort": PROBE_PORT, "protocol": "TCP"}],
        "livenessProbe": {
            **_probe("/livez"),
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
            "terminationGracePeriodSeconds": LIVENESS_GRACE_S,
        },
        "readinessProbe": {
            **_probe("/readyz"),
            "periodSeconds": 2,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            **(overlay.container_security_context or {}),
        },
        # What a worker says when it cannot start becomes readable in the pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    if spec.command:
        container["command"] = list(spec.command)
    if spec.args:
        container["args"] = list(spec.args)
    elif not spec.command:
        container["args"] = list(COMMAND)
    if spec.image_pull_policy is not None:
        container["imagePullPolicy"] = spec.image_pull_policy.value
    if overlay.env_from:
        container["envFrom"] = list(overlay.env_from)
    resources = spec.resources.model_dump(mode="json", exclude_defaults=True)
    if resources:
        container["resources"] = resources
    return container


def _environment(queue: TaskQueue) -> list[Object]:
    """The operator's variables, which win, after those that they are made from."""
    own: dict[str, Object] = {
        "POD_NAME": _field("metadata.name"),
        "POD_IP": _field("status.podIP"),
        "NODE_NAME": _field("spec.nodeName"),
        "TIDEWORK_WORKER_NAME": _field("metadata.name"),
        "TIDEWORK_REDIS_URL": {
            "valueFrom": {
                "secretKeyRef": {"name": redis_secret(queue.spec.redis), "key": REDIS_SECRET_KEY}
            }
        },
        "TIDEWORK_REDIS_URL_FILE": {"value": f"{_REDIS}/{REDIS_SECRET_KEY}"},
        # The pod's own address, be it of IPv4 or IPv6: there the kubelet and Prometheus ask.
        "TIDEWORK_PROBE_HOST": {"value": "$(POD_IP)"},
        "TIDEWORK_PROBE_PORT": {"value": str(PROBE_PORT)},
    }
    own |= {name: {"value": value} for name, value in worker_environment(queue).items()}
    given = [
        {"name": variable.name, "valueFrom": variable.value_from}
        if variable.value_from is not None
        else {"name": variable.name, "value": variable.value}
        for variable in queue.spec.env
        if variable.name not in own
    ]
    return [*({"name": name, **value} for name, value in own.items()), *given]


def _field(path: str) -> Object:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": "probes"}}
