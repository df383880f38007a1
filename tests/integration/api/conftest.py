"""The API over a real server, asked without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.support.fixtures import namespace, redis_url, valkey
from tidework.access.access import Everybody
from tidework.access.caller import Permission
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.broker.redis.redis_broker import RedisBroker, connect

__all__ = ["namespace", "redis_url", "valkey"]


@pytest.fixture
async def broker(redis_url: str) -> AsyncIterator[RedisBroker]:
    found = connect(redis_url)
    yield found
    await found.close()


@pytest.fixture
async def api(broker: RedisBroker, namespace: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose caller may do everything; paths begin below /api/v1."""
    app = create_api(ApiContext(broker, Everybody(Permission.ADMIN), namespace))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test/api/v1") as client:
        yield client
