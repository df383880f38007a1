"""What the operator asks of the API server: six verbs over plain JSON objects.

kube.py implements it with the official client; tests have a cluster in memory. Objects are dicts as
the API server speaks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from tidework.errors import TideworkError

Object = dict[str, Any]

GROUP = "tidework.dev"
FIELD_MANAGER = "tidework-operator"
SCALE_MANAGER = "tidework-scale"


class ClusterError(TideworkError):
    """The API server refused, or cannot be reached. ``status`` is HTTP's, 0 without an answer."""

    def __init__(self, doing: str, status: int, reason: str) -> None:
        self.doing = doing
        self.status = status
        self.reason = reason
        super().__init__(f"{doing}: {status or 'no answer'}: {reason}")

    @property
    def is_conflict(self) -> bool:
        """Someone else changed or created the object first."""
        return self.status == 409

    @property
    def is_forbidden(self) -> bool:
        """RBAC, quota or admission say no."""
        return self.status == 403


@dataclass(frozen=True, slots=True)
class Resource:
    """How the API server names a kind. ``path`` is its group and version."""

    path: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """As documents say it: ``apps/v1``, ``v1``."""
        return self.path.partition("/")[2]


class Kind(Enum):
    """Every kind that the operator touches, and one that the plugin reads."""

    TASK_QUEUE = Resource("apis/tidework.dev/v1alpha1", "taskqueues", "TaskQueue")
    CRON_TASK = Resource("apis/tidework.dev/v1alpha1", "crontasks", "CronTask")
    DEPLOYMENT = Resource("apis/apps/v1", "deployments", "Deployment")
    REPLICA_SET = Resource("apis/apps/v1", "replicasets", "ReplicaSet")
    POD = Resource("api/v1", "pods", "Pod")
    SERVICE_ACCOUNT = Resource("api/v1", "serviceaccounts", "ServiceAccount")
    EVENT = Resource("apis/events.k8s.io/v1", "events", "Event")
    LEASE = Resource("apis/coordination.k8s.io/v1", "leases", "Lease")
    PDB = Resource("apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget")
    CRON_JOB = Resource("apis/batch/v1", "cronjobs", "CronJob")
    NETWORK_POLICY = Resource("apis/networking.k8s.io/v1", "networkpolicies", "NetworkPolicy")


READ_BY_PLUGIN = frozenset({Kind.CRON_JOB})
"""Kinds that the operator itself has no rights to: whoever runs the plugin has."""


class Cluster(Protocol):
    """The API server. Every method raises ClusterError."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """One object; None if there is none."""

    async def list(
        self, kind: Kind, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> list[Object]:
        """All objects of a namespace, or of all; ``labels`` have to be equal."""

    async def create(self, kind: Kind, body: Object, *, manager: str = FIELD_MANAGER) -> Object:
        """POST. A ClusterError with ``is_conflict`` if it exists."""

    async def apply(self, kind: Kind, body: Object, *, manager: str = FIELD_MANAGER) -> Object:
        """Server-side apply, forced: the object is as ``body`` says, other fields are untouched."""

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Object,
        *,
        subresource: str = "",
        manager: str = FIELD_MANAGER,
    ) -> Object:
        """Merge patch of the object or of its ``status`` or ``scale``."""

    async def replace(self, kind: Kind, body: Object) -> Object:
        """PUT under the body's resourceVersion: conflicts if it changed meanwhile."""

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete in the background; nothing happens if it is gone."""
