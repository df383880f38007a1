"""Fleets as they are read from objects of the API server and from presence in Redis."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.fake_cluster import FakeCluster
from tidework.model.backlog import Cordon, Presence
from tidework.model.identity import QueueName
from tidework.scaling import ReplicaStates
from tidework_operator.autoscaling.fleet import LOST_AFTER, Fleet, Rank, WorkerPod, read_fleet
from tidework_operator.autoscaling.gather import look_at_cluster
from tidework_operator.cluster import Kind, Object
from tidework_operator.naming import DELETION_COST_ANNOTATION, owned_by_taskqueue, worker_labels

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def pod(name: str, status: Object | None = None, node: str = "node", **metadata: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": "shop", **metadata},
        "spec": {"nodeName": node} if node else {},
        "status": READY if status is None else status,
    }


def deployment(**spec: int) -> Object:
    return {"metadata": {"generation": 3}, "spec": spec, "status": {"observedGeneration": 3}}


def presence(incarnation: str, seconds_ago: int = 0) -> Presence:
    return Presence(incarnation, NOW - timedelta(seconds=seconds_ago))


def read(
    *pods: Object,
    workers: tuple[Presence, ...] = (),
    leases: dict[str, int] | None = None,
    of: Object | None = None,
) -> Fleet:
    return read_fleet(of or deployment(), pods, workers, leases or {}, NOW)


@pytest.mark.parametrize(
    ("found", "rank"),
    [
        (pod("a", {"phase": "Pending"}, node=""), Rank.UNASSIGNED),
        (pod("a", {"phase": "Pending"}), Rank.PENDING),
        (pod("a", {}), Rank.PENDING),
        (pod("a", {"phase": "Unknown"}), Rank.UNKNOWN),
        (pod("a", {"phase": "Running"}), Rank.NOT_READY),
        (
            pod("a", {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}),
            Rank.NOT_READY,
        ),
        (pod("a"), Rank.READY),
    ],
)
def test_ranks_are_those_of_the_replica_set_controller(found: Object, rank: Rank) -> None:
    assert read(found).pods == (WorkerPod("a", rank),)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_ended_are_none(phase: str) -> None:
    assert read(pod("a", {"phase": phase})).pods == ()


@pytest.mark.parametrize(
    ("cost", "marked"), [("-100", True), ("0", False), ("7", False), ("much", False)]
)
def test_a_negative_deletion_cost_is_a_mark(cost: str, marked: bool) -> None:
    found = read(pod("a", annotations={DELETION_COST_ANNOTATION: cost}))

    assert found.pods[0].marked is marked


def test_leases_of_all_incarnations_count_and_the_latest_one_is_the_worker() -> None:
    workers = (presence("a.2", 1), presence("a.1", 20), presence("b.1"))
    found = read(
        pod("a"), pod("b"), pod("c"), workers=workers, leases={"a.1": 2, "a.2": 1, "c.9": 1}
    )

    assert [(each.name, each.incarnation, each.leases) for each in found.pods] == [
        ("a", "a.2", 3),
        ("b", "b.1", 0),
        ("c", "c.9", 1),
    ]


def test_a_stale_presence_is_none() -> None:
    stale = replace(presence("a.1", 31), silent_for=timedelta(seconds=31))

    (found,) = read(pod("a"), workers=(stale,)).pods

    assert found.incarnation == ""


def test_a_person_may_want_a_worker_to_go() -> None:
    workers = (
        replace(presence("a.1"), cordon=Cordon.PERSON),
        replace(presence("b.1"), cordon=Cordon.AUTOSCALER),
        replace(presence("c.1", 20), cordon=Cordon.PERSON | Cordon.AUTOSCALER),
        presence("c.2"),
    )
    found = read(pod("a"), pod("b"), pod("c"), workers=workers)

    assert [each.unwanted for each in found.pods] == [True, False, False], "c is another life"


def test_states_count_each_pod_once() -> None:
    leaving = (NOW + timedelta(minutes=5)).isoformat()
    found = read(
        pod("idle"),
        pod("busy"),
        pod("starting", {"phase": "Running"}),
        pod("unwell", {"phase": "Running"}),
        pod("draining", deletionTimestamp=leaving),
        leases={"busy.1": 1, "unwell.1": 2, "draining.1": 1},
    )

    assert found.states == ReplicaStates(starting=1, idle=1, busy=2, draining=1)
    assert [each.name for each in found.active] == ["idle", "busy", "starting", "unwell"]


def test_a_pod_long_past_its_grace_is_lost_and_drains_no_more() -> None:
    past = (NOW - LOST_AFTER - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = read(pod("a", deletionTimestamp=past))

    assert found.pods[0].lost
    assert found.states == ReplicaStates()


@pytest.mark.parametrize(
    ("status", "rolling"),
    [
        ({"replicas": 2, "updatedReplicas": 2}, False),
        ({}, False),
        ({"replicas": 3, "updatedReplicas": 1}, True),
        ({"replicas": 3}, True),
        ({"observedGeneration": 2}, True),
    ],
)
def test_a_rollout_shows_in_the_deployment(status: dict[str, int], rolling: bool) -> None:
    of = deployment()
    of["status"] |= status

    assert read(of=of).rolling is rolling


def test_a_deployment_without_status_was_not_seen_by_its_controller() -> None:
    assert read(of={"metadata": {"generation": 1}, "spec": {}}).rolling


def test_replicas_default_to_one_as_in_kubernetes() -> None:
    assert read(of=deployment()).replicas == 1
    assert read(of=deployment(replicas=0)).replicas == 0


async def test_the_cluster_is_read_in_two_lists_for_all_queues() -> None:
    cluster = FakeCluster()
    for name, uid in (("emails", "u1"), ("images", "u2")):
        labels = worker_labels(name, uid)
        owner = {"labels": labels, "ownerReferences": [owned_by_taskqueue(name, uid)]}
        for kind, called in ((Kind.DEPLOYMENT, f"tw-{name}"), (Kind.POD, f"tw-{name}-1")):
            cluster.put(
                kind, {"metadata": {"name": called, "namespace": "shop", **owner}, "spec": {}}
            )
    stranger = {"name": "x", "namespace": "shop", "labels": worker_labels("Not a queue", "u")}
    cluster.put(Kind.POD, {"metadata": stranger})
    cluster.put(Kind.DEPLOYMENT, {"metadata": stranger})

    sight = await look_at_cluster(cluster, ())

    emails = QueueName("shop", "emails")
    assert cluster.calls == ["list deployments ", "list pods "]
    assert [found["metadata"]["name"] for found in sight.pods[emails]] == ["tw-emails-1"]
    assert sight.deployment_of(emails, "u1") is not None
    assert sight.deployment_of(emails, "u2") is None
    assert len(sight.pods) == len(sight.deployments) == 2


async def test_of_a_few_namespaces_only_those_are_asked() -> None:
    cluster = FakeCluster()

    await look_at_cluster(cluster, ["shop", "mail"])

    assert cluster.calls == [
        "list deployments shop",
        "list pods shop",
        "list deployments mail",
        "list pods mail",
    ]
