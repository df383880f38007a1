"""The client: how it fails, and which cluster it talks to."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from tests.support.api_server import ApiServer, refusal
from tests.support.servers import free_port
from tests.unit.operator.clients import KUBECONFIG, answer, kube_at, last, taskqueue
from tidework.errors import ConfigurationError
from tidework_operator.cluster import ClusterError, Kind
from tidework_operator.kube import Kube, connect


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


async def test_a_refused_connection_is_status_0() -> None:
    kube = kube_at(f"http://127.0.0.1:{free_port()}")

    with pytest.raises(ClusterError) as refused:
        await kube.get(Kind.LEASE, "tidework", "operator")
    await kube.close()

    assert refused.value.status == 0
    assert refused.value.doing == "GET leases tidework/operator"
    assert "cannot be reached" in str(refused.value)
    assert (kube.requests, kube.failures) == (1, 1)


async def test_a_server_that_does_not_answer_is_not_waited_for(api_server: ApiServer) -> None:
    go_on = asyncio.Event()

    async def hang(_: web.Request) -> web.StreamResponse:
        await go_on.wait()
        return web.Response()

    api_server.respond = hang
    kube = kube_at(api_server.url, timeout=timedelta(milliseconds=50))

    with pytest.raises(ClusterError, match="did not answer in time") as silent:
        await kube.list(Kind.POD, namespace="shop")
    go_on.set()
    await kube.close()

    assert silent.value.status == 0


async def test_a_connection_that_breaks_off_is_status_0_and_a_write_is_not_resent(
    api_server: ApiServer, kube: Kube
) -> None:
    async def break_off(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    api_server.respond = break_off
    with pytest.raises(ClusterError) as broken:
        await kube.create(Kind.TASK_QUEUE, taskqueue())

    assert broken.value.status == 0
    assert len(api_server.asked) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 409, 422, 429, 500, 503])
async def test_a_refusal_says_what_the_api_server_said(
    api_server: ApiServer, kube: Kube, status: int
) -> None:
    api_server.respond = answer(refusal(status, 'deployments.apps "tw-emails" is not allowed'))

    with pytest.raises(ClusterError) as refused:
        await kube.apply(Kind.DEPLOYMENT, taskqueue("tw-emails"))

    error = refused.value
    assert (error.status, error.is_conflict, error.is_forbidden) == (
        status,
        status == 409,
        status == 403,
    )
    assert error.reason == 'deployments.apps "tw-emails" is not allowed'
    assert str(error).startswith(f"PATCH deployments shop/tw-emails: {status}: deployments.apps")
    assert len(api_server.asked) == 1


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (web.Response(text="<html>a proxy</html>", status=502), "<html>a proxy</html>"),
        (web.Response(text="", status=504), "an empty answer"),
        (web.Response(text="[]", status=200), "no object"),
        (web.Response(text="{}", status=404), "no reason given"),
    ],
)
async def test_an_answer_that_is_none_of_the_api_servers(
    api_server: ApiServer, kube: Kube, response: web.Response, reason: str
) -> None:
    api_server.respond = answer(response)

    with pytest.raises(ClusterError) as refused:
        await kube.replace(Kind.LEASE, taskqueue())

    assert reason in refused.value.reason
    assert refused.value.status == response.status


async def test_a_token_never_shows_in_an_error(api_server: ApiServer, kube: Kube) -> None:
    api_server.respond = answer(refusal(401, "Unauthorized"))

    with pytest.raises(ClusterError) as refused:
        await kube.list(Kind.POD)

    assert "secret-token" not in repr(refused.value)


async def test_credentials_that_cannot_be_read_are_an_error_of_the_cluster(
    api_server: ApiServer,
) -> None:
    from kubernetes.aio.config import ConfigException

    configuration = Configuration(host=api_server.url)
    configuration.api_key["BearerToken"] = "x"

    def unreadable(_: object) -> None:
        raise ConfigException("Token file exists but empty.")

    configuration.refresh_api_key_hook = unreadable  # type: ignore[assignment]
    kube = Kube(configuration)

    with pytest.raises(ClusterError, match="no credentials: Token file"):
        await kube.list(Kind.POD)
    await kube.close()


async def test_a_kubeconfig_names_the_cluster(api_server: ApiServer, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.format(url=api_server.url))

    kube = await connect(str(file), version="1.2.3")
    await kube.list(Kind.POD)
    await kube.close()

    assert kube.address == api_server.url
    assert last(api_server).headers["authorization"] == "Bearer from-the-file"
    assert last(api_server).headers["User-Agent"] == "tidework-operator/1.2.3"


@pytest.mark.parametrize("text", [None, "", "{}", "contexts: []", "a: [", "[]"])
async def test_a_kubeconfig_that_is_none_says_how_to_mend_it(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "config"
    if text is not None:
        file.write_text(text)

    with pytest.raises(ConfigurationError, match="TIDEWORK_KUBECONFIG") as fault:
        await connect(str(file))

    assert str(file) in str(fault.value)


async def test_another_client_gets_in_the_same_way(kube: Kube) -> None:
    access = await kube.access()

    assert (access["server"], access["token"]) == (kube.address, "secret-token")
