"""Applying: the actions of a plan, as requests to the API server.

Replicas are written through the scale subresource alone, under a field manager of its own, so that
applying the Deployment's template never touches them. A smaller count is bound to the Deployment
as it was seen: whoever was overtaken meanwhile (another leader, kubectl scale) is refused.
"""

from __future__ import annotations

from tidework_operator.autoscaling.plan import Action, Mark, Scale, Unmark
from tidework_operator.cluster import SCALE_MANAGER, Cluster, ClusterError, Kind, Object
from tidework_operator.naming import DELETION_COST_ANNOTATION

VICTIM_COST = "-100"


async def apply(cluster: Cluster, deployment: Object, action: Action) -> None:
    """One action. Raises ClusterError; nothing happens to a pod that is gone."""
    match action:
        case Scale(replicas):
            await _scale(cluster, deployment, replicas)
        case Mark(pod):
            await _set_cost(cluster, deployment, pod, VICTIM_COST)
        case Unmark(pod):
            await _set_cost(cluster, deployment, pod, None)


async def _scale(cluster: Cluster, deployment: Object, replicas: int) -> None:
    metadata = deployment["metadata"]
    patch: Object = {"spec": {"replicas": replicas}}
    if replicas < deployment["spec"].get("replicas", 1):
        patch["metadata"] = {"resourceVersion": metadata["resourceVersion"]}
    await cluster.patch(
        Kind.DEPLOYMENT,
        metadata["namespace"],
        metadata["name"],
        patch,
        subresource="scale",
        manager=SCALE_MANAGER,
    )


async def _set_cost(cluster: Cluster, deployment: Object, pod: str, cost: str | None) -> None:
    patch = {"metadata": {"annotations": {DELETION_COST_ANNOTATION: cost}}}
    try:
        await cluster.patch(
            Kind.POD, deployment["metadata"]["namespace"], pod, patch, manager=SCALE_MANAGER
        )
    except ClusterError as error:
        if error.status != 404:
            raise
