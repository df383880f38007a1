"""A client of the API server, on a server of the loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.api_server import ApiServer
from tests.support.fake_cluster import FakeCluster
from tests.unit.operator.clients import kube_at
from tidework_operator.kube import Kube


@pytest.fixture
async def api_server() -> AsyncIterator[ApiServer]:
    """Serves a cluster in memory."""
    async with ApiServer(FakeCluster()) as server:
        yield server


@pytest.fixture
async def kube(api_server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Kube]:
    """Our client, on that server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    kube = kube_at(api_server.url)
    yield kube
    await kube.close()
