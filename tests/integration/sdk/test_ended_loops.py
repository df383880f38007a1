"""Connections end with the event loop, the thread or the process that they belong to."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest

from tests.support.servers import ServerProcess, ValkeyServer
from tidework import Settings, Tidework

LOOPS = """
import asyncio, resource, sys, warnings
warnings.simplefilter("error")
from tidework import Settings, Tidework
app = Tidework("shop", settings=Settings(redis_url=sys.argv[1], namespace=sys.argv[2]))
@app.task
def work() -> None: ...
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
async def put() -> None:
    await work.enqueue()
def turn_and_close() -> None:
    loop = asyncio.new_event_loop()
    loop.run_until_complete(put())
    loop.close()
for _ in range(200):
    if sys.argv[3] == "run":
        asyncio.run(put())
    else:
        turn_and_close()
print(app.client.stats_sync("default").counters["enqueued"])
"""
FORK = """
import asyncio, os, sys, warnings
warnings.simplefilter("error")
from tidework import Settings, Tidework
app = Tidework("shop", settings=Settings(redis_url=sys.argv[1], namespace=sys.argv[2]))
@app.task
def work() -> None: ...
def sockets() -> int:
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
        except FileNotFoundError:
            pass  # of the listing itself
    return found
async def main() -> None:
    loop_has = sockets()
    await work.enqueue()
    work.enqueue_sync()
    assert sockets() == loop_has + 2
    if not (child := os.fork()):
        code = 1
        try:
            assert sockets() == loop_has, "the copies are closed at once"
            work.enqueue_sync()
            assert sockets() == loop_has + 1
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    await work.enqueue()
    work.enqueue_sync()
    assert sockets() == loop_has + 2, "over the same connections"
    await app.client.close()
asyncio.run(main())
app.client.close_sync()
print(app.client.stats_sync("default").counters["enqueued"])
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    """One whose connections are counted."""
    with ValkeyServer() as found:
        yield found


@pytest.fixture
def app(server: ValkeyServer, namespace: str) -> Tidework:
    return Tidework("shop", settings=Settings(redis_url=server.url, namespace=namespace))


def ours(server: ServerProcess) -> int:
    """Connections that the server has of us."""
    with server.client() as admin:
        return sum(client["name"] == "tidework" for client in admin.client_list())


def run(script: str, *arguments: str) -> str:
    found = subprocess.run(
        [sys.executable, "-X", "dev", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    assert found.stderr == ""
    return found.stdout.strip()


@pytest.mark.parametrize("way", ["run", "closed by hand"])
def test_a_loop_per_request_needs_no_more_descriptors(
    server: ValkeyServer, namespace: str, way: str
) -> None:
    assert run(LOOPS, server.url, namespace, way) == "200"


def test_a_loop_that_is_shut_down_in_order_closes_its_connections(
    app: Tidework, server: ValkeyServer
) -> None:
    async def look() -> int:
        await app.client.stats("default")
        return ours(server)

    assert asyncio.run(look()) == 1
    assert ours(server) == 0


def test_one_that_is_only_closed_leaves_them_to_the_next(
    app: Tidework, server: ValkeyServer
) -> None:
    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.client.stats("default"))
    loop.close()
    assert ours(server) == 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")

        async def look() -> int:
            await app.client.stats("default")
            return ours(server)

        assert asyncio.run(look()) == 1
        gc.collect()
    assert ours(server) == 0


def test_so_does_one_whose_thread_has_ended(app: Tidework, server: ValkeyServer) -> None:
    loop = asyncio.new_event_loop()

    def turn() -> None:
        loop.run_until_complete(app.client.stats("default"))

    thread = threading.Thread(target=turn)
    thread.start()
    thread.join(30)
    assert ours(server) == 1

    asyncio.run(app.client.stats("default"))
    assert ours(server) == 0
    loop.close()


def test_threads_that_have_ended_keep_none(app: Tidework, server: ValkeyServer) -> None:
    for _ in range(5):
        thread = threading.Thread(target=app.client.stats_sync, args=("default",))
        thread.start()
        thread.join(30)

    assert ours(server) == 1
    app.client.close_sync()
    assert ours(server) == 0


def test_a_loop_that_has_the_place_of_an_ended_one_has_its_own(app: Tidework) -> None:
    """Of objects that come one after the other some have the same address."""
    for _ in range(20):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(app.client.stats("default"))
        loop.close()
        del loop
        gc.collect()
    asyncio.run(app.client.close())


def test_a_forks_child_closes_its_copies_and_tells_nobody(
    server: ValkeyServer, namespace: str
) -> None:
    assert run(FORK, server.url, namespace) == "5"
