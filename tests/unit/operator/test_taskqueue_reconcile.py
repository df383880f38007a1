"""The objects of TaskQueues, brought into a cluster in memory and kept there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.reconcile_rig import NAME, QUEUE, UID, ReconcileRig, is_ours
from tidework_operator.cluster import Kind, Object
from tidework_operator.naming import (
    DESIRED_HASH_ANNOTATION,
    has_template,
    owned_by_taskqueue,
    worker_labels,
)
from tidework_operator.taskqueues.objects import REAPPLY_S

CHILDREN = (Kind.SERVICE_ACCOUNT, Kind.NETWORK_POLICY, Kind.PDB, Kind.DEPLOYMENT)


def foreign_deployment(labels: Mapping[str, str], *owners: Object) -> Object:
    return {
        "metadata": {
            "name": NAME,
            "namespace": QUEUE.namespace,
            "labels": dict(labels),
            "ownerReferences": list(owners),
        },
        "spec": {"replicas": 3, "template": {"metadata": {"labels": dict(labels)}}},
    }


async def test_a_new_taskqueue_gets_its_objects_and_its_first_replicas() -> None:
    rig = ReconcileRig(minReplicas=2)
    await rig.round()

    assert rig.writes() == [
        "apply serviceaccounts shop/tw-emails",
        "apply networkpolicies shop/tw-emails",
        "apply poddisruptionbudgets shop/tw-emails",
        "create deployments shop/tw-emails",
        "apply deployments shop/tw-emails",
        "patch deployments shop/tw-emails/scale",
        "patch taskqueues shop/emails/status",
    ]
    assert rig.deployment["spec"]["replicas"] == 2
    for kind in CHILDREN:
        (owner,) = rig.child(kind)["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (UID, True)


@pytest.mark.parametrize(("spec", "replicas"), [({}, 0), ({"minReplicas": 2, "replicas": 4}, 4)])
async def test_the_first_replicas_are_the_pinned_ones_or_none(
    spec: dict[str, int], replicas: int
) -> None:
    rig = ReconcileRig(**spec)
    await rig.round()

    assert rig.deployment["spec"]["replicas"] == replicas


async def test_without_a_change_there_is_nothing_to_do() -> None:
    rig = ReconcileRig()
    await rig.round()
    await rig.round()
    rig.writes()
    for _ in range(60):
        await rig.round()

    assert rig.cluster.calls == []


async def test_a_changed_template_is_applied_and_replicas_are_left_alone() -> None:
    rig = ReconcileRig(env=[{"name": "MODE", "value": "fast"}])
    await rig.round()
    patch = {"spec": {"replicas": 7}}
    await rig.cluster.patch(
        Kind.DEPLOYMENT, "shop", NAME, patch, subresource="scale", manager="tidework-scale"
    )
    rig.writes()

    rig.change(image="shop:2", slots=2, resources={"requests": {"cpu": "1"}})
    await rig.round()

    assert [call.split()[0] for call in rig.writes()][:4] == ["apply"] * 4
    spec = rig.deployment["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert (spec["replicas"], container["image"]) == (7, "shop:2")
    assert "MODE" not in [variable["name"] for variable in container["env"]]


async def test_a_change_of_replicas_alone_applies_nothing() -> None:
    rig = ReconcileRig()
    await rig.round()
    rig.writes()
    rig.change(minReplicas=3, maxReplicas=9)
    await rig.round()

    assert rig.writes() == ["patch taskqueues shop/emails/status"]
    assert rig.status["observedGeneration"] == 2


async def test_what_somebody_changed_is_put_right_after_a_while() -> None:
    rig = ReconcileRig()
    await rig.round()
    budget = rig.child(Kind.PDB)
    budget["spec"]["maxUnavailable"] = 0
    rig.cluster.put(Kind.PDB, budget)

    await rig.round(seconds=REAPPLY_S - 10)
    assert rig.child(Kind.PDB)["spec"]["maxUnavailable"] == 0
    await rig.round(seconds=11)
    assert rig.child(Kind.PDB)["spec"]["maxUnavailable"] == "25%"


async def test_a_deployment_that_was_deleted_comes_back_soon() -> None:
    rig = ReconcileRig(minReplicas=1)
    await rig.round()
    rig.cluster.remove(Kind.DEPLOYMENT, "shop", NAME)
    await rig.round(seconds=11)

    assert rig.deployment["spec"]["replicas"] == 1


async def test_an_operator_that_starts_trusts_the_hash_on_the_deployment() -> None:
    rig = ReconcileRig()
    await rig.round()
    rig.writes()
    rig.restart()
    await rig.round()
    assert rig.writes() == []

    rig.change(slots=2)
    rig.restart()
    await rig.round()
    assert "apply deployments shop/tw-emails" in rig.writes()


async def test_an_operator_that_starts_waits_for_the_first_look() -> None:
    rig = ReconcileRig()
    await rig.reconciler.tick()

    assert rig.writes() == ["patch taskqueues shop/emails/status"]
    assert rig.condition()[:2] == ("Unknown", "NotYetObserved")


async def test_an_interrupted_creation_is_gone_on_with() -> None:
    rig = ReconcileRig(minReplicas=1)
    rig.cluster.fail("apply", Kind.DEPLOYMENT, status=500)
    await rig.round()
    assert DESIRED_HASH_ANNOTATION not in (rig.deployment["metadata"].get("annotations") or {})
    rig.restart()
    await rig.round()

    (container,) = rig.deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["tidework", "worker"]
    assert DESIRED_HASH_ANNOTATION in rig.deployment["metadata"]["annotations"]


async def test_a_refused_template_leaves_a_deployment_without_replicas() -> None:
    rig = ReconcileRig(minReplicas=2)
    for _ in range(4):
        rig.cluster.fail("apply", Kind.DEPLOYMENT, status=422)
        await rig.round(seconds=20)
        assert rig.deployment["spec"]["replicas"] == 0
        assert rig.condition()[:2] == ("False", "SpecRefused")

    rig.change(minReplicas=2, slots=2)
    await rig.round()

    assert rig.deployment["spec"]["replicas"] == 2
    assert has_template(rig.deployment)


async def test_a_bare_deployment_that_was_scaled_loses_its_pods() -> None:
    rig = ReconcileRig(minReplicas=1)
    rig.cluster.fail("apply", Kind.DEPLOYMENT, status=422)
    await rig.round()
    patch = {"spec": {"replicas": 1}}  # as an operator of an earlier version did
    await rig.cluster.patch(
        Kind.DEPLOYMENT, "shop", NAME, patch, subresource="scale", manager="tidework-scale"
    )
    rig.restart()
    rig.cluster.fail("apply", Kind.DEPLOYMENT, status=422)
    await rig.round()

    assert rig.deployment["spec"]["replicas"] == 0


async def test_a_lost_annotation_leaves_the_replicas_alone() -> None:
    rig = ReconcileRig(minReplicas=2)
    await rig.round()
    found = rig.deployment
    del found["metadata"]["annotations"]
    rig.cluster.put(Kind.DEPLOYMENT, found)
    rig.writes()
    rig.restart()
    await rig.round()

    assert "patch deployments shop/tw-emails/scale" not in rig.writes()
    assert rig.deployment["spec"]["replicas"] == 2


async def test_two_operators_at_once_do_not_set_the_replicas_back() -> None:
    rig = ReconcileRig(minReplicas=1)
    rig.cluster.fail("create", Kind.DEPLOYMENT, status=409)
    await rig.round()

    assert rig.cluster.objects(Kind.DEPLOYMENT) == []
    await rig.round()
    assert rig.deployment["spec"]["replicas"] == 1


async def test_a_deployment_of_somebody_else_is_never_touched() -> None:
    rig = ReconcileRig()
    theirs = rig.cluster.put(Kind.DEPLOYMENT, foreign_deployment({"app": "shop"}))
    await rig.round()

    assert rig.condition()[:2] == ("False", "NameTaken")
    assert rig.deployment == theirs
    assert rig.cluster.objects(Kind.SERVICE_ACCOUNT) == []


async def test_the_deployment_of_a_predecessor_is_waited_for() -> None:
    rig = ReconcileRig()
    labels, owner = worker_labels(QUEUE.name, "old"), owned_by_taskqueue(QUEUE.name, "old")
    rig.cluster.put(Kind.DEPLOYMENT, foreign_deployment(labels, owner))
    await rig.round()
    assert rig.condition()[:2] == ("False", "PredecessorRemains")

    rig.cluster.remove(Kind.DEPLOYMENT, "shop", NAME)
    await rig.round(seconds=20)
    await rig.round()
    assert rig.condition()[:2] == ("True", "ScaledToZero")


async def test_an_orphan_of_an_earlier_life_is_adopted() -> None:
    rig = ReconcileRig()
    orphan = foreign_deployment(worker_labels(QUEUE.name, "old"))
    rig.cluster.put(Kind.DEPLOYMENT, orphan)
    await rig.round()

    assert is_ours(rig.deployment)
    assert rig.deployment["spec"]["replicas"] == 3
