"""Callers by Kubernetes tokens: what the API server is asked over HTTP, and what it may refuse."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from importlib.metadata import entry_points
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration
from starlette.requests import Request

from tests.support.api_server import ApiServer
from tests.support.fake_cluster import FakeCluster
from tidework.access.caller import Caller, Permission
from tidework.clock import ManualClock, SystemClock
from tidework.errors import UnauthenticatedError
from tidework_operator.api_access import KEEP, KubernetesTokens, way
from tidework_operator.kube import Kube

USERS = {
    "ann-token": {"username": "ann", "uid": "1", "groups": ["dev"], "extra": {"scope": ["x"]}},
    "robot-token": {"username": "system:serviceaccount:shop:robot"},
}
RIGHTS = {("ann", "shop"): {"list", "update"}, ("system:serviceaccount:shop:robot", "shop"): set()}


class Reviewer:
    """Answers reviews as RBAC would. is_away: it fails"""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.is_away = False
        server.respond = self.respond

    async def respond(self, request: web.Request) -> web.StreamResponse:
        body = self.server.asked[-1].body
        if self.is_away:
            return web.json_response({"message": "it is away"}, status=500)
        return web.json_response({"status": self._status(request.path, body["spec"])}, status=201)

    def _status(self, path: str, spec: dict[str, Any]) -> dict[str, Any]:
        if path == "/apis/authentication.k8s.io/v1/tokenreviews":
            user = USERS.get(spec["token"])
            return {"authenticated": user is not None, "user": user or {}}
        assert path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        about = spec["resourceAttributes"]
        assert (about["group"], about["resource"]) == ("tidework.dev", "taskqueues")
        rights = RIGHTS.get((spec["user"], about["namespace"]), set())
        return {"allowed": about["verb"] in rights}

    def reviews(self) -> list[dict[str, Any]]:
        return [asked.body for asked in self.server.asked]


@pytest.fixture
async def reviewer() -> AsyncIterator[Reviewer]:
    async with ApiServer(FakeCluster()) as server:
        yield Reviewer(server)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(SystemClock().now())


@pytest.fixture
async def tokens(reviewer: Reviewer, clock: ManualClock) -> AsyncIterator[KubernetesTokens]:
    kube = Kube(Configuration(host=reviewer.server.url))
    yield KubernetesTokens(kube, "shop", clock)
    await kube.close()


def request(authorization: str, query: str = "") -> Request:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": query.encode(),
        "headers": [(b"authorization", authorization.encode())],
    }
    return Request(scope)


ANN = request("Bearer ann-token")


async def test_what_rbac_allows_is_the_permission(
    tokens: KubernetesTokens, reviewer: Reviewer
) -> None:
    found = await tokens.recognize(ANN)

    assert found == Caller("ann", Permission.OPERATOR, frozenset({"shop"}), "kubernetes")
    asked = [review["spec"] for review in reviewer.reviews() if "user" in review["spec"]]
    assert {spec["resourceAttributes"]["verb"] for spec in asked} == {"list", "update", "delete"}
    assert all(spec["groups"] == ["dev"] and spec["extra"] == {"scope": ["x"]} for spec in asked)


async def test_another_namespace_is_asked_for(tokens: KubernetesTokens) -> None:
    found = await tokens.recognize(request("Bearer ann-token", "namespace=bank"))

    assert found is not None
    assert not found.may(Permission.VIEWER, "bank")


async def test_who_has_no_right_is_known_and_may_nothing(tokens: KubernetesTokens) -> None:
    found = await tokens.recognize(request("Bearer robot-token"))

    assert found is not None
    assert not found.may(Permission.VIEWER, "shop")


@pytest.mark.parametrize("header", ["Bearer other", "Bearer ", "Basic ann-token", ""])
async def test_a_token_that_is_not_known(tokens: KubernetesTokens, header: str) -> None:
    assert await tokens.recognize(request(header)) is None


async def test_an_answer_is_kept_for_a_while(
    tokens: KubernetesTokens,
    reviewer: Reviewer,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await tokens.recognize(ANN)
    await tokens.recognize(request("Bearer other"))
    before = len(reviewer.reviews())
    monkeypatch.delitem(USERS, "ann-token")

    assert await tokens.recognize(ANN) is not None
    assert await tokens.recognize(request("Bearer other")) is None
    assert len(reviewer.reviews()) == before
    clock.advance(KEEP + timedelta(seconds=1))
    assert await tokens.recognize(ANN) is None


async def test_an_api_server_that_cannot_be_asked_lets_nobody_in(
    tokens: KubernetesTokens, reviewer: Reviewer
) -> None:
    reviewer.is_away = True
    with pytest.raises(UnauthenticatedError) as refusal:
        await tokens.recognize(ANN)
    reviewer.is_away = False

    assert "ann-token" not in json.dumps(str(refusal.value))
    assert await tokens.recognize(ANN) is not None


def test_the_distribution_offers_it() -> None:
    (found,) = entry_points(group="tidework.access", name="kubernetes")

    assert found.load() is way
