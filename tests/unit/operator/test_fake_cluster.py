"""The cluster of the tests does what the API server does, where the operator relies on it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fake_cluster import FakeCluster
from tidework_operator.cluster import SCALE_MANAGER, ClusterError, Kind, Object

DEPLOYMENT = Kind.DEPLOYMENT


def deployment(**spec: Any) -> Object:
    return {"metadata": {"namespace": "shop", "name": "tw-emails"}, "spec": spec}


async def found(cluster: FakeCluster) -> Object:
    held = await cluster.get(DEPLOYMENT, "shop", "tw-emails")
    assert held is not None
    return held


async def test_versions_grow_with_every_change_and_with_no_other_write() -> None:
    cluster = FakeCluster()
    first = await cluster.create(DEPLOYMENT, deployment(paused=False))
    same = await cluster.patch(DEPLOYMENT, "shop", "tw-emails", {"spec": {"paused": False}})
    other = await cluster.patch(DEPLOYMENT, "shop", "tw-emails", {"spec": {"paused": True}})

    versions = [each["metadata"]["resourceVersion"] for each in (first, same, other)]
    assert versions[0] == versions[1] < versions[2]
    assert [each["metadata"]["generation"] for each in (first, same, other)] == [1, 1, 2]


async def test_an_old_version_conflicts() -> None:
    cluster = FakeCluster()
    old = await cluster.create(DEPLOYMENT, deployment(paused=False))
    await cluster.patch(DEPLOYMENT, "shop", "tw-emails", {"spec": {"paused": True}})
    scale = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}}

    with pytest.raises(ClusterError) as replaced:
        await cluster.replace(DEPLOYMENT, old)
    with pytest.raises(ClusterError) as scaled:
        await cluster.patch(
            DEPLOYMENT,
            "shop",
            "tw-emails",
            {**scale, "spec": {"replicas": 1}},
            subresource="scale",
            manager=SCALE_MANAGER,
        )

    assert replaced.value.is_conflict
    assert scaled.value.is_conflict


async def test_the_status_is_written_apart_and_is_no_generation() -> None:
    cluster = FakeCluster()
    await cluster.create(DEPLOYMENT, {**deployment(), "status": {"replicas": 9}})
    assert "status" not in await found(cluster)

    await cluster.patch(
        DEPLOYMENT, "shop", "tw-emails", {"status": {"replicas": 2}}, subresource="status"
    )
    await cluster.patch(DEPLOYMENT, "shop", "tw-emails", {"status": {"replicas": 3}})
    await cluster.replace(DEPLOYMENT, {**await found(cluster), "status": {"replicas": 4}})

    held = await found(cluster)
    assert held["status"] == {"replicas": 2}
    assert held["metadata"]["generation"] == 1


async def test_what_is_applied_no_more_goes_and_what_others_wrote_stays() -> None:
    cluster = FakeCluster()
    labels = {"mine": "1", "both": "1"}
    await cluster.apply(
        DEPLOYMENT,
        {
            "metadata": {"namespace": "shop", "name": "tw-emails", "labels": labels},
            "spec": {"paused": True, "template": {"spec": {"grace": 5}}},
        },
    )
    other = {"metadata": {"namespace": "shop", "name": "tw-emails", "labels": {"both": "1"}}}
    await cluster.apply(DEPLOYMENT, other, manager="someone")
    await cluster.patch(
        DEPLOYMENT,
        "shop",
        "tw-emails",
        {"spec": {"replicas": 3}},
        subresource="scale",
        manager=SCALE_MANAGER,
    )

    await cluster.apply(DEPLOYMENT, deployment(paused=False))

    held = await found(cluster)
    assert held["spec"] == {"paused": False, "replicas": 3}
    assert held["metadata"]["labels"] == {"both": "1"}


async def test_applying_makes_what_is_not_there() -> None:
    cluster = FakeCluster()

    made = await cluster.apply(DEPLOYMENT, deployment(paused=False))

    assert (made["apiVersion"], made["kind"]) == ("apps/v1", "Deployment")
    assert made["metadata"]["uid"]


async def test_nulls_of_a_patch_remove() -> None:
    cluster = FakeCluster()
    await cluster.create(DEPLOYMENT, deployment(a={"b": 1, "c": 2}))

    await cluster.patch(DEPLOYMENT, "shop", "tw-emails", {"spec": {"a": {"b": None}}})

    assert (await found(cluster))["spec"] == {"a": {"c": 2}}


async def test_what_is_given_out_is_a_copy() -> None:
    cluster = FakeCluster()
    body = deployment(a={"b": 1})
    made = await cluster.create(DEPLOYMENT, body)
    for each in (body, made, await found(cluster), cluster.objects(DEPLOYMENT)[0]):
        each["spec"]["a"]["b"] = 2

    assert (await found(cluster))["spec"] == {"a": {"b": 1}}


async def test_what_is_not_there() -> None:
    cluster = FakeCluster()
    assert await cluster.get(DEPLOYMENT, "shop", "tw-emails") is None
    await cluster.delete(DEPLOYMENT, "shop", "tw-emails")

    with pytest.raises(ClusterError) as patched:
        await cluster.patch(DEPLOYMENT, "shop", "tw-emails", {})
    with pytest.raises(ClusterError) as replaced:
        await cluster.replace(DEPLOYMENT, deployment())

    assert (patched.value.status, replaced.value.status) == (404, 404)


async def test_lists_are_of_a_namespace_and_of_labels() -> None:
    cluster = FakeCluster()
    for namespace, name, labels in (
        ("shop", "a", {"x": "1", "y": "1"}),
        ("shop", "b", {"x": "2"}),
        ("lab", "a", {"x": "1"}),
    ):
        metadata = {"namespace": namespace, "name": name, "labels": labels}
        cluster.put(Kind.POD, {"metadata": metadata})

    assert len(await cluster.list(Kind.POD)) == 3
    assert len(await cluster.list(Kind.POD, namespace="shop")) == 2
    assert len(await cluster.list(Kind.POD, labels={"x": "1"})) == 2
    assert await cluster.list(Kind.POD, namespace="lab", labels={"y": "1"}) == []


async def test_faults_are_as_many_as_were_planted() -> None:
    cluster = FakeCluster()
    cluster.fail("list", Kind.POD, status=503, times=2)
    for _ in range(2):
        with pytest.raises(ClusterError, match="503"):
            await cluster.list(Kind.POD)
    assert await cluster.list(Kind.POD) == []

    cluster.away = True
    with pytest.raises(ClusterError) as away:
        await cluster.list(Kind.POD)
    assert away.value.status == 0
    assert len(cluster.called("list", Kind.POD)) == 4
