"""The objects of a TaskQueue. Pure: the same TaskQueue gives the same objects, and the same hash.

- ServiceAccount without a token: workers have no business with the API server.
- NetworkPolicy: from outside only the port of probes and metrics can be reached. Outwards a worker
  may go wherever its tasks have to, but not to link-local addresses, where clouds keep the
  credentials of nodes, except for DNS. Policies add up: whoever needs such an address, or wants
  less, adds a policy (for less: one that denies, of a network plug-in that knows denying).
- PodDisruptionBudget: bounds how many workers a drain of nodes has end at once; it never blocks,
  not even for a single replica or for workers that are broken.
- Deployment without ``replicas``, which belong to another field manager (see autoscaling/apply).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from tidework.manifests import TaskQueue
from tidework_operator.cluster import Kind, Object
from tidework_operator.naming import (
    DESIRED_HASH_ANNOTATION,
    PROBE_PORT,
    owned_by_taskqueue,
    worker_labels,
    worker_selector,
    workers_name,
)
from tidework_operator.taskqueues.worker_pod import CONTAINER, pod_template

REVISIONS = 3


@dataclass(frozen=True, slots=True)
class Desired:
    """others: (kind, body) in the order to apply, before the Deployment, which names them.

    hash: of all of it; the Deployment carries it as an annotation
    """

    deployment: Object
    others: tuple[tuple[Kind, Object], ...]
    hash: str


def desired_objects(queue: TaskQueue) -> Desired:
    """Everything that belongs to the TaskQueue. Its spec has to name an image."""
    others = (
        (Kind.SERVICE_ACCOUNT, _service_account(queue)),
        (Kind.NETWORK_POLICY, _network_policy(queue)),
        (Kind.PDB, _disruption_budget(queue)),
    )
    deployment = _deployment(queue)
    text = json.dumps([deployment, *(body for _, body in others)], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    deployment["metadata"]["annotations"] = {DESIRED_HASH_ANNOTATION: digest}
    return Desired(deployment, others, digest)


def seed_of(deployment: Object) -> Object:
    """The Deployment as it is created: with no replicas, and no more of it than has to be.

    Whoever creates an object owns every field of the request for ever, and applying never removes
    a field with another owner. So the seed has only what every Deployment of ours has.
    """
    spec = deployment["spec"]
    container = spec["template"]["spec"]["containers"][0]
    return {
        **deployment,
        "metadata": {k: v for k, v in deployment["metadata"].items() if k != "annotations"},
        "spec": {
            "replicas": 0,
            "selector": spec["selector"],
            "template": {
                "metadata": {"labels": spec["selector"]["matchLabels"]},
                "spec": {"containers": [{"name": CONTAINER, "image": container["image"]}]},
            },
        },
    }


def _object(kind: Kind, queue: TaskQueue, **parts: object) -> Object:
    metadata = queue.metadata
    return {
        "apiVersion": kind.value.api_version,
        "kind": kind.value.kind,
        "metadata": {
            "name": workers_name(metadata.name),
            "namespace": metadata.namespace,
            "labels": worker_labels(metadata.name, metadata.uid),
            "ownerReferences": [owned_by_taskqueue(metadata.name, metadata.uid)],
        },
        **parts,
    }


def _service_account(queue: TaskQueue) -> Object:
    return _object(Kind.SERVICE_ACCOUNT, queue, automountServiceAccountToken=False)


def _network_policy(queue: TaskQueue) -> Object:
    dns = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    anywhere = [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}},
        {"ipBlock": {"cidr": "::/0", "except": ["fe80::/10"]}},
    ]
    spec = {
        "podSelector": {"matchLabels": worker_selector(queue.metadata.name)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"ports": [{"protocol": "TCP", "port": PROBE_PORT}]}],
        "egress": [{"ports": dns}, {"to": anywhere}],
    }
    return _object(Kind.NETWORK_POLICY, queue, spec=spec)


def _disruption_budget(queue: TaskQueue) -> Object:
    spec = {
        "maxUnavailable": "25%",  # rounded up: one at least
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": worker_selector(queue.metadata.name)},
    }
    return _object(Kind.PDB, queue, spec=spec)


def _deployment(queue: TaskQueue) -> Object:
    spec = {
        "revisionHistoryLimit": REVISIONS,
        "selector": {"matchLabels": worker_selector(queue.metadata.name)},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0},
        },
        "template": pod_template(queue),
    }
    return _object(Kind.DEPLOYMENT, queue, spec=spec)
