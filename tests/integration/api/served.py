"""The API on a socket, served by a thread of the test's process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tidework.access.access import Everybody
from tidework.access.caller import Permission
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.api.server import ApiServer
from tidework.broker.redis.redis_broker import connect


@contextmanager
def served(redis_url: str, namespace: str) -> Iterator[str]:
    """Where it is: http://127.0.0.1:PORT. Everybody may do everything."""
    found: list[tuple[asyncio.AbstractEventLoop, ApiServer]] = []
    is_up = threading.Event()

    async def serve() -> None:
        broker = connect(redis_url)
        app = create_api(ApiContext(broker, Everybody(Permission.ADMIN), namespace))
        server = ApiServer(app, "127.0.0.1", 0)
        found.append((asyncio.get_running_loop(), server))
        is_up.set()
        try:
            await server.serve()
        finally:
            server.close()
            await broker.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="api")
    thread.start()
    try:
        assert is_up.wait(20)
        yield found[0][1].url
    finally:
        loop, server = found[0]
        loop.call_soon_threadsafe(server.stop)
        thread.join(20)
        assert not thread.is_alive()
