"""What the operator tells of TaskQueues in trouble, and how often it writes."""

from __future__ import annotations

import pytest

from tests.support.reconcile_rig import ReconcileRig
from tidework_operator.cluster import ClusterError, Kind
from tidework_operator.observations import ScalingReport, Trouble
from tidework_operator.taskqueues.refusals import trouble_of


async def test_a_spec_that_cannot_be_read_leaves_what_runs_as_it_is() -> None:
    rig = ReconcileRig()
    await rig.round()
    before = rig.deployment
    rig.change(slot=3)
    await rig.round()

    status, reason, message = rig.condition()
    assert (status, reason) == ("False", "SpecInvalid")
    assert "spec.slot: unknown field; did you mean slots?" in message
    assert rig.deployment == before
    assert ("Warning", "SpecInvalid") in rig.events()


async def test_slots_beside_async_slots_are_told_and_leave_what_runs_as_it_is() -> None:
    """As in a cluster whose objects are older than the rule against it."""
    rig = ReconcileRig()
    await rig.round()
    before = rig.deployment
    rig.change(slots=1, asyncSlots=100)
    await rig.round()

    status, reason, message = rig.condition()
    assert (status, reason) == ("False", "SpecInvalid")
    assert "spec.asyncSlots: 100 is given beside slots, which is 1; keep asyncSlots" in message
    assert rig.deployment == before


async def test_a_missing_image_is_told() -> None:
    rig = ReconcileRig(image=None)
    await rig.round()

    assert rig.condition()[:2] == ("False", "ImageMissing")
    assert "name the image" in rig.condition()[2]
    assert rig.cluster.objects(Kind.DEPLOYMENT) == []


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (403, "Forbidden"),
        (422, "SpecRefused"),
        (404, "ApiServerTrouble"),
        (500, "ApiServerTrouble"),
    ],
)
async def test_what_the_api_server_refuses_is_told_and_tried_again(
    status: int, reason: str
) -> None:
    rig = ReconcileRig()
    rig.cluster.fail("apply", Kind.SERVICE_ACCOUNT, status=status)
    await rig.round()
    assert rig.condition()[:2] == ("False", reason)
    assert "planted by the test" in rig.condition()[2]

    await rig.round()
    await rig.round()
    assert rig.condition()[:2] == ("True", "ScaledToZero")
    assert rig.events() == [("Normal", "Recovered"), ("Warning", reason)]


@pytest.mark.parametrize(
    ("status", "said", "reason"),
    [
        (
            403,
            "unable to create in namespace shop because it is being terminated",
            "NamespaceTerminating",
        ),
        (404, 'namespaces "shop" not found', "NamespaceTerminating"),
        (403, "exceeded quota: small, requested: count/deployments.apps=1", "QuotaExceeded"),
        (403, 'User "operator" cannot patch resource "deployments"', "Forbidden"),
        (400, "strict decoding error", "SpecRefused"),
        (500, "failed to create typed patch object: .spec: field not declared", "SpecRefused"),
        (0, "connection refused", "ApiServerTrouble"),
    ],
)
def test_answers_of_the_api_server_are_told_by_what_mends_them(
    status: int, said: str, reason: str
) -> None:
    trouble = trouble_of(ClusterError("PATCH deployments shop/tw-emails", status, said))

    assert trouble.reason == reason
    assert said in trouble.message


OF_TYPES = "failed to create typed patch object (shop/tw-emails; apps/v1, Kind=Deployment): "
IN_POD = ".spec.template.spec."


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            f"{OF_TYPES}{IN_POD}affinity.nodeAffinity: expected map, got &{{5}}",
            "spec.template.spec.affinity.nodeAffinity: has to be a mapping",
        ),
        (
            (
                f'{OF_TYPES}{IN_POD}containers[name="worker"].env[name="A"].valueFrom.x: '
                "expected string, got &value.valueUnstructured{Value:5}"
            ),
            'spec.env[name="A"].valueFrom.x: has to be text (put it in quotes)',
        ),
        (
            (
                f'{OF_TYPES}errors:\n  {IN_POD}volumes[name="a"].configMap.defaultMode: expected '
                "numeric (int or float), got string\n  "
                f'{IN_POD}containers[name="worker"].securityContext.x: field not declared in schema'
            ),
            (
                'spec.template.spec.volumes[name="a"].configMap.defaultMode: has to be a number; '
                "spec.template.spec.containerSecurityContext.x: Kubernetes has no such field here; "
                "correct its name, or remove it"
            ),
        ),
        (
            (
                "failed to convert new object (shop/tw-emails; apps/v1, Kind=Deployment) to proper "
                "version: unable to convert unstructured object to apps/v1, Kind=Deployment: "
                "quantities must match the regular expression '^x$'"
            ),
            "quantities must match the regular expression '^x$'",
        ),
        (
            (
                'Deployment.apps "tw-emails" is invalid: spec.template.spec.containers[0].'
                'resources.requests: Invalid value: "2": must be integer multiple of page size'
            ),
            'spec.resources.requests: Invalid value: "2": must be integer multiple of page size',
        ),
    ],
)
def test_what_the_api_server_says_of_the_deployment_is_said_of_the_spec(
    said: str, told: str
) -> None:
    trouble = trouble_of(ClusterError("PATCH deployments shop/tw-emails", 500, said))
    if said.startswith("Deployment"):
        trouble = trouble_of(ClusterError("PATCH deployments shop/tw-emails", 422, said))

    assert trouble.reason == "SpecRefused"
    assert trouble.message == f"the API server refuses what the spec asks for: {told}"


async def test_the_waits_between_attempts_grow_until_the_spec_changes() -> None:
    rig = ReconcileRig()
    rig.cluster.fail("apply", Kind.SERVICE_ACCOUNT, status=422, times=1000)
    for _ in range(64):
        await rig.round()
    attempts = len(rig.cluster.called("apply", Kind.SERVICE_ACCOUNT))
    assert 5 <= attempts <= 8

    rig.change(slots=2)
    await rig.round()
    assert len(rig.cluster.called("apply", Kind.SERVICE_ACCOUNT)) == attempts + 1


async def test_one_taskqueue_in_trouble_does_not_keep_others_waiting() -> None:
    rig = ReconcileRig()
    other = {"metadata": {"name": "zebra", "namespace": "shop", "uid": "z"}, "spec": {"bad": 1}}
    rig.cluster.put(Kind.TASK_QUEUE, other)
    rig.cluster.fail("apply", Kind.SERVICE_ACCOUNT, status=500, times=100)
    await rig.round()

    emails, zebra = rig.cluster.objects(Kind.TASK_QUEUE)
    assert emails["status"]["conditions"][0]["reason"] == "ApiServerTrouble"
    assert zebra["status"]["conditions"][0]["reason"] == "SpecInvalid"


async def test_pod_problems_become_conditions_and_one_event() -> None:
    rig = ReconcileRig()
    await rig.round()
    state = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    pod = {
        "metadata": {"name": "a", "namespace": "shop"},
        "status": {"containerStatuses": [{"name": "worker", "image": "shop:1", "state": state}]},
    }
    for _ in range(30):
        await rig.round(pod)

    assert rig.condition("WorkersHealthy")[:2] == ("False", "ImagePullFailed")
    assert rig.condition()[:2] == ("False", "ImagePullFailed")
    assert "correct spec.image" in rig.condition()[2]
    assert rig.events() == [("Warning", "ImagePullFailed")]


async def test_redis_in_trouble_is_told() -> None:
    rig = ReconcileRig()
    await rig.round()
    trouble = Trouble("ConnectionMissing", "the operator has no Redis connection 'fast'; add it")
    await rig.round(redis_trouble=trouble)

    assert rig.condition("RedisReachable") == ("False", trouble.reason, trouble.message)
    assert rig.condition()[:2] == ("False", "ConnectionMissing")


async def test_a_countdown_is_not_written_every_second() -> None:
    rig = ReconcileRig()
    await rig.round()
    rig.writes()
    for second in range(30):
        rig.scaling = ScalingReport(wanted=0, why=f"idle for {second} of 30 s")
        await rig.round()

    assert 4 <= len(rig.writes()) <= 7
    assert rig.status["why"].startswith("idle for 2")


async def test_a_refused_status_is_written_later() -> None:
    rig = ReconcileRig()
    rig.cluster.fail("patch", Kind.TASK_QUEUE, status=500, times=2)
    await rig.round()
    assert "status" not in rig.child(Kind.TASK_QUEUE)
    for _ in range(5):
        await rig.round()

    assert rig.condition()[:2] == ("True", "ScaledToZero")


async def test_an_inventory_that_is_late_does_not_make_us_write_twice() -> None:
    rig = ReconcileRig()
    rig.cluster.watchers.clear()
    for _ in range(10):
        await rig.round()

    assert len(rig.cluster.called("patch", Kind.TASK_QUEUE)) <= 2


async def test_a_status_that_somebody_overwrote_is_put_right() -> None:
    rig = ReconcileRig()
    await rig.round()
    await rig.round()
    found = rig.child(Kind.TASK_QUEUE)
    found["status"]["conditions"] = []
    rig.cluster.put(Kind.TASK_QUEUE, found)
    await rig.round(seconds=31)

    assert rig.condition()[:2] == ("True", "ScaledToZero")


async def test_a_taskqueue_that_is_being_deleted_is_left_in_peace() -> None:
    rig = ReconcileRig()
    found = rig.child(Kind.TASK_QUEUE)
    found["metadata"]["deletionTimestamp"] = "2026-01-05T10:00:00Z"
    rig.cluster.put(Kind.TASK_QUEUE, found)
    await rig.round()

    assert rig.writes() == []
