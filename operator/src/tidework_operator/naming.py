"""Every name, label and annotation that the operator gives, and whose an object is.

Each is built by one function.

The objects of a TaskQueue share one name within its namespace. The selector of its Deployment,
which can never be changed, says its name and not its uid: so a Deployment that outlived its
TaskQueue (``kubectl delete --cascade=orphan``, a restore) can be adopted by the next one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

GROUP_DOMAIN = "tidework.dev"

NAME_LABEL = "app.kubernetes.io/name"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
TASKQUEUE_LABEL = f"{GROUP_DOMAIN}/taskqueue"
TASKQUEUE_UID_LABEL = f"{GROUP_DOMAIN}/taskqueue-uid"

WORKER_APP = "tidework-worker"
OPERATOR = "tidework-operator"

AUTOSCALING_ANNOTATION = f"{GROUP_DOMAIN}/autoscaling"
"""On a TaskQueue: the value ``disabled`` makes the operator leave the replicas alone."""

DESIRED_HASH_ANNOTATION = f"{GROUP_DOMAIN}/desired-hash"
"""On the Deployment: what it and its siblings were applied from."""

DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
"""https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost"""

REDIS_SECRET_KEY = "url"

PROBE_PORT = 8080
"""Port of worker pods: /livez, /readyz, /redisz and /metrics."""

_LONGEST = 63
_HASH_LENGTH = 8


def workers_name(queue: str) -> str:
    """The Deployment, ServiceAccount, PDB and NetworkPolicy of the TaskQueue of this name."""
    return _cut(f"tw-{queue}")


def worker_labels(queue: str, uid: str) -> dict[str, str]:
    """On everything that belongs to the TaskQueue, its pods included."""
    return {**worker_selector(queue), MANAGED_BY_LABEL: OPERATOR, TASKQUEUE_UID_LABEL: uid}


def worker_selector(queue: str) -> dict[str, str]:
    """What selects the pods of the TaskQueue within its namespace."""
    return {NAME_LABEL: WORKER_APP, TASKQUEUE_LABEL: queue}


def all_workers_selector() -> dict[str, str]:
    """What selects the pods and Deployments of all TaskQueues."""
    return {NAME_LABEL: WORKER_APP, MANAGED_BY_LABEL: OPERATOR}


def selector_text(selector: Mapping[str, str]) -> str:
    """A selector as the scale subresource and kubectl write it."""
    return ",".join(f"{label}={value}" for label, value in sorted(selector.items()))


def redis_secret(connection: str) -> str:
    """The Secret, in the namespace of the workers, whose key ``url`` holds the Redis URL."""
    return f"tidework-redis-{connection}"


def owned_by_taskqueue(name: str, uid: str) -> dict[str, Any]:
    """An owner reference: the TaskQueue of this uid controls the object, which goes with it.

    Its own deletion never waits for that, so no finalizer is involved and nothing can hang.
    """
    return {
        "apiVersion": f"{GROUP_DOMAIN}/v1alpha1",
        "kind": "TaskQueue",
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def controller_uid(found: Mapping[str, Any]) -> str:
    """The uid of the object's controller, '' without one."""
    for owner in found["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("uid", ""))
    return ""


def has_template(deployment: Mapping[str, Any]) -> bool:
    """Are its pods workers? Not before the template was applied: a seed's pods carry no such label.

    Nothing else may be scaled: what a refused template leaves behind is an image without its
    settings, its bounds and its ServiceAccount.
    """
    template = deployment["spec"].get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    return all_workers_selector().items() <= labels.items()


def pod_of(incarnation: str) -> str:
    """The pod whose worker this is or was: its container's restarts are incarnations of one."""
    return incarnation.rpartition(".")[0]


def _cut(name: str) -> str:
    """At most 63 characters; names that differ only beyond stay different."""
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: _LONGEST - _HASH_LENGTH - 1].rstrip('-')}-{digest}"
