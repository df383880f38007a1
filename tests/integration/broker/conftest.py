"""What the tests of this folder share: servers that live on, and a proxy in front of one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.integration.broker.rig import Rig
from tests.support.fixtures import namespace, redis_server, redis_url, valkey
from tests.support.proxy import Proxy
from tests.support.servers import ValkeyServer
from tidework.model.identity import QueueName

__all__ = ["namespace", "redis_server", "redis_url", "valkey"]


@pytest.fixture
async def proxy(valkey: ValkeyServer) -> AsyncIterator[Proxy]:
    """In front of the Valkey server of the test process."""
    async with Proxy(valkey.port) as found:
        yield found


on_both = pytest.mark.parametrize("rig", ["valkey", "redis_server"], indirect=True)


@pytest.fixture
async def rig(request: pytest.FixtureRequest, namespace: str) -> AsyncIterator[Rig]:
    """A queue of its own, with a proxy that loses what it is told to.

    On Valkey; parametrized by ``on_both`` it is on Redis too.
    """
    server: ValkeyServer = request.getfixturevalue(getattr(request, "param", "valkey"))
    async with Proxy(server.port) as proxy:
        with server.client() as client:
            found = Rig(server.url, proxy, client, QueueName(namespace, "q"))
            yield found
            await found.close()
