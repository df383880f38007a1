"""A connection that lay idle and was closed meanwhile fails nobody; processes and threads share."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.support.servers import ValkeyServer
from tidework.broker.connection import blocking_wire, wire
from tidework.broker.connection.servers import MOST_CONNECTIONS
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect, connect_blocking
from tidework.model.identity import QueueName, new_job_id
from tidework.model.job import Job

FORK = """
import os, sys
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.broker.connection.transport import drive
broker = connect_blocking(sys.argv[1])
ask = lambda: drive(broker.transport.command("CLIENT", "ID"))
before = ask()
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, b"%d" % ask())
    os._exit(0)
os.wait()
print(before, ask(), os.read(reader, 100).decode())
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    """One whose connections may all be ended."""
    with ValkeyServer() as found:
        yield found


@pytest.fixture(params=["with hiredis", "without hiredis"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without hiredis":
        for module in (blocking_wire, wire):
            monkeypatch.setattr(module, "hiredis", None)


def close_all(server: ValkeyServer) -> None:
    """What a timeout of the server or a proxy does to connections that nobody uses."""
    with server.client() as admin:
        admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def job() -> Job:
    return Job(new_job_id(), "t", {})


@pytest.mark.usefixtures("parser")
def test_a_program_without_an_event_loop_goes_on(server: ValkeyServer, namespace: str) -> None:
    broker, queue = connect_blocking(server.url), QueueName(namespace, "q")
    for _ in range(3):
        (found,) = drive(broker.enqueue(queue, [job()]))
        assert found.inserted
        close_all(server)

    counters = drive(broker.stats(queue)).counters
    drive(broker.close())
    assert (counters["enqueued"], counters.get("known", 0)) == (3, 0)


@pytest.mark.usefixtures("parser")
async def test_so_does_one_whose_event_loop_has_not_turned(
    server: ValkeyServer, namespace: str
) -> None:
    broker, queue = connect(server.url), QueueName(namespace, "q")
    for _ in range(3):
        (found,) = await broker.enqueue(queue, [job()])
        assert found.inserted
        close_all(server)  # and the loop stands still the while

    counters = (await broker.stats(queue)).counters
    await broker.close()
    assert (counters["enqueued"], counters.get("known", 0)) == (3, 0)


@pytest.mark.usefixtures("parser")
def test_threads_share_a_bounded_number_of_connections(
    server: ValkeyServer, namespace: str
) -> None:
    broker, queue = connect_blocking(server.url), QueueName(namespace, "q")
    seen: set[int] = set()
    together = threading.Barrier(MOST_CONNECTIONS + 8, timeout=30)

    def put() -> None:
        together.wait()
        for _ in range(5):
            drive(broker.enqueue(queue, [job()]))
            seen.add(drive(broker.transport.command("CLIENT", "ID")))

    threads = [threading.Thread(target=put) for _ in range(together.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    counters = drive(broker.stats(queue)).counters
    drive(broker.close())
    assert counters["enqueued"] == 5 * together.parties
    assert 1 <= len(seen) <= MOST_CONNECTIONS


def test_a_fork_has_a_connection_of_its_own(server: ValkeyServer) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FORK, server.url],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=dict(os.environ),
    )

    before, after, of_child = run.stdout.split()
    assert before == after != of_child
