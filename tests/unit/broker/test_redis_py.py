"""The release of redis-py that is installed has what we take from inside it.

If one of these fails after an upgrade of redis-py: see where it keeps that now, and mend
``broker/connection/redis_py.py``. Nothing else of Tidework looks inside, as the last test holds.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
import redis
import redis.asyncio
from redis.exceptions import NoPermissionError

from tests.architecture.source import ROOT
from tests.unit.broker.scripted_server import ScriptedServer
from tidework.broker.connection import redis_py
from tidework.broker.connection.blocking_wire import BlockingConnections
from tidework.broker.connection.wire import Connections
from tidework.errors import ConfigurationError

MOVED = (
    f"redis-py {redis.__version__} has moved something: mend broker/connection/redis_py.py, or "
    "exclude this release in worker/pyproject.toml"
)
OPTIONS = {
    "host": "127.0.0.1",
    "protocol": 2,
    "driver_info": None,
    "timeout": 20.0,
    "socket_timeout": 20.0,
    "max_connections": 1,
}
INSIDE = re.compile(r"\b(?:connection|made|maker|_connection|_maker)\._[a-z]\w*")


class Without:
    """A connection of a release of redis-py that has moved one attribute."""

    def __init__(self, connection: object, moved: str) -> None:
        self._connection, self._moved = connection, moved

    def __getattr__(self, name: str) -> object:
        if name == self._moved:
            raise AttributeError(name)
        return getattr(self._connection, name)


def move(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def inner(connection: Any, *names: str) -> Any:
        return looks_inside(cast("Any", Without(connection, name)), *names)

    looks_inside = redis_py._inner
    monkeypatch.setattr(redis_py, "_inner", inner)


@contextmanager
def told() -> Iterator[None]:
    """Whatever goes wrong within is told as a release that has moved something."""
    try:
        yield
    except Exception as error:
        pytest.fail(f"{MOVED} ({error!r})")


def test_a_blocking_connection_has_its_socket_and_makes_errors() -> None:
    with ScriptedServer([]) as server:
        made = redis.Connection("127.0.0.1", server.port, protocol=2, driver_info=None)  # type: ignore[no-untyped-call]
        made.connect()  # type: ignore[no-untyped-call]
        with told():
            found = redis_py.socket_of(made)
            error = redis_py.error_maker_of(made)("NOPERM no")

        assert isinstance(found, socket.socket), MOVED
        assert found.getpeername()[1] == server.port, MOVED
        assert type(error) is NoPermissionError, MOVED
        made.disconnect()  # type: ignore[no-untyped-call]


async def test_a_connection_of_a_loop_has_its_transport_and_makes_errors() -> None:
    with ScriptedServer([[b""]]) as server:
        made = redis.asyncio.Connection(
            host="127.0.0.1", port=server.port, protocol=2, driver_info=None
        )
        await made.connect()  # type: ignore[no-untyped-call]
        with told():
            found = redis_py.transport_of(made)
            error = redis_py.error_maker_of(made)("NOPERM no")
            open_at_first = redis_py.is_open(made)

        assert isinstance(found, asyncio.WriteTransport), MOVED
        assert found.get_extra_info("peername")[1] == server.port, MOVED
        assert type(error) is NoPermissionError, MOVED
        assert open_at_first, MOVED

        found.write(b"the server ends the connection after this")
        with told():
            async with asyncio.timeout(20):
                while redis_py.is_open(made):
                    await asyncio.sleep(0.001)  # the loop has to hear of the server's end
            taken = redis_py.take_writer(made)

        assert taken is not None, MOVED
        assert taken.transport is found, MOVED
        assert not made.is_connected, f"{MOVED}: it would be closed again"
        assert not redis_py.is_open(made), MOVED
        with told():
            assert redis_py.take_writer(made) is None, MOVED
        found.abort()


@pytest.mark.parametrize("name", ["_sock", "_parser"])
def test_a_blocking_program_is_told_of_a_release_that_moved_something(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    move(name, monkeypatch)
    with ScriptedServer([]) as server:
        connections = BlockingConnections(OPTIONS | {"port": server.port})
        with pytest.raises(
            ConfigurationError, match=rf"redis-py [\d.]+ has no \w+\.{name}, .* older"
        ):
            connections.take()
        connections.end_all()


@pytest.mark.parametrize("name", ["_writer", "_parser"])
async def test_a_program_with_a_loop_is_told_of_a_release_that_moved_something(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    move(name, monkeypatch)
    with ScriptedServer([]) as server:
        connections = Connections(OPTIONS | {"port": server.port})
        with pytest.raises(
            ConfigurationError, match=rf"redis-py [\d.]+ has no \w+\.{name}, .* older"
        ):
            await connections.take()
        await connections.end_all()


def test_nothing_else_looks_inside() -> None:
    folder = ROOT / "worker/src/tidework/broker"
    found = {
        path.name: INSIDE.findall(path.read_text("utf-8"))
        for path in folder.rglob("*.py")
        if path.name != "redis_py.py"
    }

    assert {name: places for name, places in found.items() if places} == {}
