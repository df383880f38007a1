"""Fixtures over real servers: one server per test process, a namespace of its own per test."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from tests.support.leaks import watching
from tests.support.servers import ValkeyServer, redis_binary


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeyServer]:
    """A Valkey server for the whole test process: do not kill this one."""
    with ValkeyServer() as server, watching(server):
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[ValkeyServer]:
    """A Redis server for the whole test process, where redis-server is installed."""
    binary = redis_binary()
    if binary is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is not on the PATH: install it (Debian: redis-server)")
        pytest.skip("redis-server is not on the PATH; Valkey runs the same suite")
    with ValkeyServer(binary) as server, watching(server):
        yield server


@pytest.fixture
def redis_url(valkey: ValkeyServer) -> str:
    """URL of the Valkey server."""
    return valkey.url


@pytest.fixture
def namespace() -> str:
    """A namespace that no other test uses."""
    return f"t-{os.getpid()}-{secrets.token_hex(4)}"
