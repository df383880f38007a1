"""Rounds of the autoscaler in trouble, under other deciders, and what it tells."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.autoscaling_rig import QUEUE, UID, AutoscalingRig
from tidework.errors import BrokerUnavailableError, StaleTermError
from tidework_operator.cluster import Kind
from tidework_operator.naming import (
    AUTOSCALING_ANNOTATION,
    owned_by_taskqueue,
    worker_labels,
    worker_selector,
)


async def test_redis_in_trouble_holds_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = AutoscalingRig(maxReplicas=3)
    await rig.put(3)
    await rig.play_until(lambda: rig.replicas == 3)
    with monkeypatch.context() as patched:

        async def fail(*args: object, **kwargs: object) -> None:
            raise BrokerUnavailableError(
                "Redis at redis:6379 cannot be reached; check that it runs"
            )

        patched.setattr(rig.broker, "gather", fail)
        patched.setattr(rig.broker, "drain", fail)
        await rig.play(60)
        assert rig.replicas == 3
        assert rig.seen.redis_trouble is not None
        assert rig.seen.redis_trouble.reason == "RedisUnavailable"
        assert "load unknown" in rig.why

    await rig.play_until(lambda: rig.replicas == 0)
    assert rig.fleet.taken_busy == []


async def test_pods_that_still_drain_count_against_the_maximum() -> None:
    rig = AutoscalingRig(maxReplicas=3, service=100)
    await rig.put(3)
    await rig.play_until(lambda: rig.busy == 3)
    # Evicted by somebody else, and long at their jobs.
    for pod in rig.fleet.pods[:2]:
        rig.fleet._take(pod)
    await rig.put(30)

    await rig.play(20)

    assert rig.fleet.most <= 5  # the two, and what the ReplicaSet controller replaced at once
    assert rig.replicas == 3
    deployment = rig.fleet.deployment
    deployment["spec"]["replicas"] = 1  # somebody's hand: growing again finds the places taken
    rig.cluster.put(Kind.DEPLOYMENT, deployment)
    await rig.autoscaler.tick()
    assert rig.replicas == 1
    assert "2 still draining count against maxReplicas" in rig.why


async def test_a_terminating_pod_of_a_lost_node_counts_no_more() -> None:
    rig = AutoscalingRig(maxReplicas=1)
    labels = worker_labels(QUEUE.name, UID)
    rig.cluster.put(
        Kind.POD,
        {
            "metadata": {
                "name": "gone",
                "namespace": QUEUE.namespace,
                "labels": labels,
                "deletionTimestamp": "2026-01-05T09:59:00Z",
            },
            "spec": {"nodeName": "lost"},
            "status": {"phase": "Running"},
        },
    )
    await rig.put(1)

    await rig.autoscaler.tick()

    assert rig.replicas == 1


async def test_a_pin_is_followed_and_drains_first() -> None:
    rig = AutoscalingRig(maxReplicas=2)
    rig.change(maxReplicas=2, replicas=4)
    await rig.play(1)
    assert rig.replicas == 4
    await rig.put(4)
    await rig.play_until(lambda: rig.busy == 4)

    rig.change(maxReplicas=2, replicas=1)
    await rig.play(1)
    assert rig.replicas == 4
    await rig.play_until(lambda: rig.replicas == 1)

    assert rig.fleet.taken_busy == []
    scaling = rig.seen.scaling
    assert scaling is not None
    assert scaling.inactive is not None
    assert (scaling.inactive.reason, scaling.wanted) == ("Pinned", 1)


async def test_a_queue_that_is_left_alone_is_given_back_whole() -> None:
    rig = AutoscalingRig(maxReplicas=3, minReplicas=1)
    await rig.put(3)
    await rig.play_until(lambda: rig.replicas == 3)
    await rig.play_until(lambda: bool(rig.marked))

    rig.change(annotations={AUTOSCALING_ANNOTATION: "disabled"}, maxReplicas=3, minReplicas=1)
    await rig.play(1)
    before = rig.replicas
    await rig.put(50)
    await rig.play(30)

    assert rig.replicas == before
    assert rig.marked == set()
    assert await rig.cordoned() == set()
    scaling = rig.seen.scaling
    assert scaling is not None
    assert scaling.inactive is not None
    assert scaling.inactive.reason == "Disabled"


async def test_without_a_term_nothing_is_touched() -> None:
    rig = AutoscalingRig(maxReplicas=3, term=None)
    await rig.put(3)

    await rig.play(3)

    assert rig.replicas == 0
    assert rig.seen.stats is not None
    assert rig.seen.stats.backlog == 3
    assert rig.seen.scaling is not None
    assert rig.seen.scaling.inactive is not None
    assert rig.seen.scaling.inactive.reason == "NotLed"


@pytest.mark.parametrize("spec", [{"minReplicas": 1}, {"replicas": 2}, {}])
async def test_a_deployment_without_its_template_is_never_scaled(spec: dict[str, int]) -> None:
    rig = AutoscalingRig(maxReplicas=3, **spec)
    complete = rig.fleet.deployment
    seed = {**complete["spec"], "template": {"metadata": {"labels": worker_selector(QUEUE.name)}}}
    rig.cluster.put(Kind.DEPLOYMENT, {**complete, "spec": seed})
    await rig.put(3)
    await rig.play(90)

    assert rig.replicas == 0
    assert rig.seen.scaling is not None
    assert rig.seen.scaling.inactive is not None
    assert rig.seen.scaling.inactive.reason == "NoDeployment"

    rig.cluster.put(Kind.DEPLOYMENT, {**rig.fleet.deployment, "spec": complete["spec"]})
    await rig.play_until(lambda: rig.replicas > 0)


async def test_a_refused_term_ends_the_lead_before_the_cluster_is_touched() -> None:
    rig = AutoscalingRig(maxReplicas=3)
    await rig.put(3)
    await rig.broker.take_term(QUEUE)
    await rig.broker.take_term(QUEUE)
    with pytest.raises(StaleTermError):
        await rig.broker.drain(QUEUE, 1, [], 0, ttl=timedelta(seconds=60))

    await rig.play(1)

    assert rig.terms.held is None
    assert rig.replicas == 0


async def test_a_deployment_of_somebody_else_is_not_scaled() -> None:
    rig = AutoscalingRig(maxReplicas=3)
    deployment = rig.fleet.deployment
    deployment["metadata"]["ownerReferences"] = [owned_by_taskqueue(QUEUE.name, "another")]
    rig.cluster.put(Kind.DEPLOYMENT, deployment)
    await rig.put(3)

    await rig.play(2)

    assert rig.replicas == 0
    assert rig.seen.deployment is None


async def test_an_api_server_that_is_away_changes_nothing() -> None:
    rig = AutoscalingRig(maxReplicas=3)
    await rig.put(3)
    await rig.play(1)
    seen = rig.seen
    rig.cluster.away = True
    await rig.autoscaler.tick()
    assert rig.seen is seen
    rig.cluster.away = False
    await rig.play(1)
    assert rig.seen is not seen


async def test_a_refused_scale_is_told() -> None:
    rig = AutoscalingRig(maxReplicas=3)
    await rig.put(3)
    rig.cluster.fail("patch", Kind.DEPLOYMENT, status=403)

    await rig.play(1)
    scaling = rig.seen.scaling
    assert scaling is not None
    assert scaling.inactive is not None
    assert scaling.inactive.reason == "ScaleFailed"
    await rig.play(1)
    assert rig.replicas == 3


async def test_scaling_is_told_once_up_and_once_down() -> None:
    rig = AutoscalingRig(maxReplicas=4)
    await rig.put(8)
    await rig.play_until(lambda: rig.replicas == 4)
    await rig.play_until(lambda: rig.replicas == 0)

    notes = sorted(event["note"] for event in rig.cluster.objects(Kind.EVENT))
    assert [note.partition(":")[0] for note in notes if note.startswith("replicas 0 ->")] == [
        "replicas 0 -> 4"
    ]
    assert any(" -> 0: " in note for note in notes)


async def test_a_job_of_an_unknown_task_starts_one_pod_for_each_version() -> None:
    rig = AutoscalingRig(maxReplicas=3)
    rig.have_version("v1")
    await rig.broker.announce(QUEUE, "v1", ["send"])
    await rig.put_unknown()
    await rig.play(120)
    assert rig.fleet.most == 0
    assert "1 job waits for a worker that knows its task 'sned'" in rig.why

    rig.have_version("v2")
    await rig.play_until(lambda: rig.replicas == 1)
    assert "a new version has a look" in rig.why
    await rig.broker.announce(QUEUE, "v2", ["send"])
    await rig.play_until(lambda: rig.replicas == 0)
    # Another leader, who remembers nothing, knows that it was looked at.
    rig.restart()
    await rig.play(60)
    assert (rig.replicas, rig.fleet.most) == (0, 1)
