"""The client: what goes over the wire."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.api_server import ApiServer, refusal
from tests.unit.operator.clients import answer, kube_at, last, taskqueue
from tidework_operator.cluster import SCALE_MANAGER, ClusterError, Kind, Object
from tidework_operator.kube import Kube


async def test_getting_one_and_none(api_server: ApiServer, kube: Kube) -> None:
    api_server.cluster.put(Kind.TASK_QUEUE, taskqueue(app="shop.tasks"))

    found = await kube.get(Kind.TASK_QUEUE, "shop", "emails")

    assert found is not None
    assert found["spec"] == {"app": "shop.tasks"}
    assert last(api_server).path == "/apis/tidework.dev/v1alpha1/namespaces/shop/taskqueues/emails"
    assert last(api_server).headers["authorization"] == "bearer secret-token"
    assert last(api_server).headers["User-Agent"].startswith("tidework-operator")
    assert await kube.get(Kind.TASK_QUEUE, "shop", "other") is None


async def test_listing_takes_page_after_page(api_server: ApiServer) -> None:
    for number in range(5):
        api_server.cluster.put(Kind.POD, {**taskqueue(f"pod-{number}"), "apiVersion": "v1"})
    kube = kube_at(api_server.url, page=2)

    found = await kube.list(Kind.POD, namespace="shop")
    await kube.close()

    assert [each["metadata"]["name"] for each in found] == [f"pod-{n}" for n in range(5)]
    assert [asked.query for asked in api_server.asked] == [
        {"limit": "2"},
        {"limit": "2", "continue": "2"},
        {"limit": "2", "continue": "4"},
    ]
    assert {(each["apiVersion"], each["kind"]) for each in found} == {("v1", "Pod")}


async def test_pages_that_expire_are_taken_in_one_piece(api_server: ApiServer, kube: Kube) -> None:
    page = {"metadata": {"continue": "token+/="}, "items": [{"metadata": {"name": "a"}}]}
    whole = {"metadata": {}, "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}
    api_server.respond = answer(
        (200, page), refusal(410, "The provided continue parameter is too old"), (200, whole)
    )

    found = await kube.list(Kind.POD)

    assert [each["metadata"]["name"] for each in found] == ["a", "b"]
    assert [asked.query for asked in api_server.asked] == [
        {"limit": "500"},
        {"limit": "500", "continue": "token+/="},
        {},
    ]
    assert last(api_server).path == "/api/v1/pods"


async def test_an_empty_list_of_go_is_null(api_server: ApiServer, kube: Kube) -> None:
    api_server.respond = answer((200, {"metadata": {}, "items": None}))

    assert await kube.list(Kind.POD) == []


async def test_labels_are_all_asked_for(api_server: ApiServer, kube: Kube) -> None:
    labels = {"app.kubernetes.io/name": "tidework-worker", "tidework.dev/taskqueue": "emails"}
    pod = taskqueue("mine")
    pod["metadata"]["labels"] = {**labels, "more": "x"}
    api_server.cluster.put(Kind.POD, pod)
    api_server.cluster.put(Kind.POD, taskqueue("other"))

    found = await kube.list(Kind.POD, namespace="shop", labels=labels)

    assert [each["metadata"]["name"] for each in found] == ["mine"]
    selector = "app.kubernetes.io/name=tidework-worker,tidework.dev/taskqueue=emails"
    assert last(api_server).query["labelSelector"] == selector


async def test_creating(api_server: ApiServer, kube: Kube) -> None:
    made = await kube.create(Kind.TASK_QUEUE, taskqueue(app="x"), manager="someone")

    assert made["metadata"]["uid"]
    asked = last(api_server)
    assert (asked.method, asked.path) == (
        "POST",
        "/apis/tidework.dev/v1alpha1/namespaces/shop/taskqueues",
    )
    assert asked.query == {"fieldManager": "someone"}
    assert asked.headers["Content-Type"] == "application/json"
    with pytest.raises(ClusterError) as again:
        await kube.create(Kind.TASK_QUEUE, taskqueue(app="x"))
    assert again.value.is_conflict


async def test_applying_is_forced_and_of_its_own_content_type(
    api_server: ApiServer, kube: Kube
) -> None:
    body = {"metadata": {"namespace": "shop", "name": "tw-emails"}, "spec": {"paused": False}}

    await kube.apply(Kind.DEPLOYMENT, body)

    asked = last(api_server)
    assert (asked.method, asked.path) == (
        "PATCH",
        "/apis/apps/v1/namespaces/shop/deployments/tw-emails",
    )
    assert asked.headers["Content-Type"] == "application/apply-patch+yaml"
    assert asked.query == {"fieldManager": "tidework-operator", "force": "true"}
    assert asked.body == {"apiVersion": "apps/v1", "kind": "Deployment", **body}


@pytest.mark.parametrize("subresource", ["", "status", "scale"])
async def test_patching_an_object_or_a_part_of_it(
    api_server: ApiServer, kube: Kube, subresource: str
) -> None:
    api_server.cluster.put(Kind.DEPLOYMENT, taskqueue("tw-emails", replicas=1))
    patch: Object = (
        {"status": {"replicas": 3}} if subresource == "status" else {"spec": {"replicas": 3}}
    )

    await kube.patch(
        Kind.DEPLOYMENT,
        "shop",
        "tw-emails",
        patch,
        subresource=subresource,
        manager=SCALE_MANAGER,
    )

    asked = last(api_server)
    tail = f"/{subresource}" if subresource else ""
    assert asked.path == f"/apis/apps/v1/namespaces/shop/deployments/tw-emails{tail}"
    assert asked.headers["Content-Type"] == "application/merge-patch+json"
    assert asked.query == {"fieldManager": "tidework-scale"}
    assert asked.body == patch


async def test_an_empty_patch_is_an_empty_object(api_server: ApiServer, kube: Kube) -> None:
    api_server.cluster.put(Kind.DEPLOYMENT, taskqueue("tw-emails"))

    await kube.patch(Kind.DEPLOYMENT, "shop", "tw-emails", {})

    assert last(api_server).body == {}


async def test_replacing_is_bound_to_the_version(api_server: ApiServer, kube: Kube) -> None:
    found = api_server.cluster.put(Kind.LEASE, taskqueue("operator", holderIdentity="a"))
    found["spec"]["holderIdentity"] = "b"

    await kube.replace(Kind.LEASE, found)
    with pytest.raises(ClusterError) as overtaken:
        await kube.replace(Kind.LEASE, found)

    assert overtaken.value.is_conflict
    assert last(api_server).method == "PUT"


async def test_deleting_is_in_the_background_and_twice_is_no_error(
    api_server: ApiServer, kube: Kube
) -> None:
    api_server.cluster.put(Kind.PDB, taskqueue("tw-emails"))

    await kube.delete(Kind.PDB, "shop", "tw-emails")
    await kube.delete(Kind.PDB, "shop", "tw-emails")

    assert api_server.cluster.objects(Kind.PDB) == []
    assert api_server.asked[0].body == {"propagationPolicy": "Background"}


async def test_deleting_what_may_not_be_deleted_is_an_error(
    api_server: ApiServer, kube: Kube
) -> None:
    api_server.respond = answer(refusal(403, "forbidden"))

    with pytest.raises(ClusterError):
        await kube.delete(Kind.PDB, "shop", "tw-emails")


async def test_a_name_cannot_change_the_path(api_server: ApiServer, kube: Kube) -> None:
    await kube.get(Kind.POD, "shop", "../secrets?x=y")

    assert (
        "..%2Fsecrets%3Fx%3Dy" in last(api_server).path or "../secrets?x=y" in last(api_server).path
    )
    assert last(api_server).query == {}


async def test_many_requests_at_once(api_server: ApiServer, kube: Kube) -> None:
    api_server.cluster.put(Kind.TASK_QUEUE, taskqueue())

    found = await asyncio.gather(*(kube.get(Kind.TASK_QUEUE, "shop", "emails") for _ in range(200)))

    assert len([each for each in found if each]) == 200
    assert kube.failures == 0
