"""The client against a real server, and the errors of servers that cannot serve."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.servers import ValkeyServer, free_port, valkey_binary
from tidework import Client, JobState, Settings, Tidework
from tidework.broker.redis.redis_broker import connect
from tidework.errors import (
    BrokerFullError,
    BrokerRefusedError,
    BrokerUnavailableError,
    ConfigurationError,
    EnvelopeError,
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
    LayoutError,
    WaitTimeoutError,
)
from tidework.model.identity import QueueName
from tidework.model.lease import ExchangeRequest, Settlement
from tidework.model.outcome import JobError, Outcome


@pytest.fixture
def app(redis_url: str, namespace: str) -> Tidework:
    return Tidework("shop", settings=Settings(redis_url=redis_url, namespace=namespace))


async def settle(app: Tidework, outcome: Outcome) -> str:
    """Be a worker for one job."""
    settings = app.client.settings
    broker = connect(settings.redis_url)
    queue = QueueName(settings.namespace, "default")
    reply = await broker.exchange(queue, ExchangeRequest("w", 1, 1))
    found = reply.claimed[0]
    await broker.exchange(
        queue, ExchangeRequest("w", 2, 0, (Settlement(found.id, found.token, outcome),))
    )
    await broker.close()
    return found.id


async def test_waiting_for_a_result(app: Tidework) -> None:
    @app.task
    def add(a: int) -> dict[str, int]:
        return {"sum": a}

    handle = await add.enqueue(1)
    with pytest.raises(WaitTimeoutError, match="still ready"):
        await handle.result(timeout=0.05)
    waiting = asyncio.create_task(handle.result(timeout=20))
    assert await settle(app, Outcome.complete(b'{"sum":3}')) == handle.id
    assert await waiting == {"sum": 3}
    assert await asyncio.to_thread(handle.result_sync, timeout=5) == {"sum": 3}
    await app.client.close()
    app.client.close_sync()


async def test_waiting_for_a_job_that_ends_badly(app: Tidework) -> None:
    @app.task
    def add(a: int) -> int:
        return a

    dead = await add.enqueue(1)
    await settle(app, Outcome.bury(JobError("ValueError", "boom", "the trace")))
    with pytest.raises(JobFailedError, match="ValueError: boom") as caught:
        await dead.result(timeout=5)
    assert caught.value.trace == "the trace"
    gone = await add.enqueue(1)
    assert await gone.cancel() == "cancelled"
    with pytest.raises(JobCancelledError):
        await gone.result(timeout=5)
    with pytest.raises(JobNotFoundError, match="never enqueued there"):
        await app.client.get("nobody", queue="default")
    with pytest.raises(JobNotFoundError):
        await app.client.cancel("nobody", queue="default")
    await app.client.close()


async def test_params_beyond_the_limit(app: Tidework) -> None:
    @app.task
    def store(text: str) -> None: ...

    with pytest.raises(EnvelopeError, match="the limit is 262144"):
        await store.enqueue("x" * 300_000)
    assert (await app.client.stats("default")).unfinished == 0
    await app.client.close()


def test_the_sync_client_from_many_threads(app: Tidework) -> None:
    @app.task
    def add(a: int) -> int:
        return a

    threads = [
        threading.Thread(target=lambda: [add.enqueue_sync(n) for n in range(20)]) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = app.client.stats_sync("default")
    assert stats.states[JobState.READY] == stats.counters["enqueued"] == 100
    app.client.close_sync()


async def test_a_client_outlives_event_loops(app: Tidework) -> None:
    @app.task
    def add(a: int) -> int:
        return a

    async def put() -> None:
        await add.enqueue(1)
        await app.client.close()

    for _ in range(3):
        await asyncio.to_thread(asyncio.run, put())
    assert await app.client.queue_length("default") == 3
    await app.client.close()


@pytest.fixture
def server_of() -> Iterator[object]:
    servers: list[ValkeyServer] = []

    def make(*options: str) -> ValkeyServer:
        server = ValkeyServer(valkey_binary(), *options)
        servers.append(server)
        server.start()
        return server

    yield make
    for server in servers:
        server.stop()


def client_at(url: str) -> Client:
    return Client(Settings(redis_url=url))


def test_a_server_that_is_not_there() -> None:
    port = free_port()
    with pytest.raises(BrokerUnavailableError, match=rf"127.0.0.1:{port}.*--redis-url"):
        client_at(f"redis://127.0.0.1:{port}/0").stats_sync("q")


def test_a_server_that_needs_a_password(server_of) -> None:  # type: ignore[no-untyped-def]
    server = server_of("--requirepass", "secret")
    for url in (server.url, server.url.replace("redis://", "redis://:wrong@")):
        with pytest.raises(BrokerRefusedError, match=r"redis://USER:PASSWORD@") as caught:
            client_at(url).stats_sync("q")
        assert "wrong@" not in str(caught.value)
    client_at(server.url.replace("redis://", "redis://:secret@")).stats_sync("q")


def test_a_read_only_replica(server_of) -> None:  # type: ignore[no-untyped-def]
    primary = server_of()
    replica = server_of("--replicaof", f"127.0.0.1 {primary.port}")
    told = "read-only replica; point the URL at the primary"
    with pytest.raises(BrokerUnavailableError, match=told):
        client_at(replica.url).stats_sync("q")


def test_a_full_server_refuses_new_work_and_settles_old(server_of) -> None:  # type: ignore[no-untyped-def]
    server = server_of()
    app = Tidework("shop", settings=Settings(redis_url=server.url))

    @app.task
    def add(a: int) -> int:
        return a

    handle = add.enqueue_sync(1)
    with server.client() as admin:
        admin.config_set("maxmemory", "1")
    with pytest.raises(BrokerFullError, match="maxmemory"):
        add.enqueue_sync(2)
    assert asyncio.run(settle(app, Outcome.complete(b"1"))) == handle.id
    assert handle.get_sync().result == 1
    app.client.close_sync()


def test_a_queue_of_a_later_layout(app: Tidework, redis_url: str, namespace: str) -> None:
    import redis

    with redis.Redis.from_url(redis_url) as plain:
        key = f"tw1:{{{namespace}/default}}:meta"
        plain.hset(key, mapping={"layout": 2, "least_layout": 2})

    @app.task
    def add(a: int) -> int:
        return a

    with pytest.raises(LayoutError, match="upgrade tidework"):
        add.enqueue_sync(1)


def test_a_wrong_url() -> None:
    with pytest.raises(ConfigurationError, match="TIDEWORK_REDIS_URL"):
        Settings.load(redis_url="http://x")
    with pytest.raises(ConfigurationError, match=r"TIDEWORK_REDIS_URL.*HOST:PORT"):
        Settings.load(redis_url="redis://localhost:port/0")
    with pytest.raises(ConfigurationError, match=r"TIDEWORK_REDIS_URL.*HOST:PORT"):
        connect("redis://localhost:port/0")


async def test_scripts_are_loaded_again_when_the_server_forgot_them(app: Tidework) -> None:
    @app.task
    def add(a: int) -> int:
        return a

    await add.enqueue(1)
    broker = connect(app.client.settings.redis_url)
    queue = QueueName(app.client.settings.namespace, "default")
    await broker.transport.command("SCRIPT", "FLUSH")
    assert (await broker.upkeep(queue)).promoted == 0
    await broker.transport.command("SCRIPT", "FLUSH")
    assert (await broker.gather(queue, horizon=timedelta(0))).backlog == 1
    await broker.close()
    await app.client.close()


def test_unix_sockets(tmp_path: Path, server_of) -> None:  # type: ignore[no-untyped-def]
    socket = tmp_path / "valkey.sock"
    server_of("--unixsocket", str(socket))
    assert client_at(f"unix://{socket}").stats_sync("q").unfinished == 0


@pytest.mark.parametrize("off", [-3600.0, 3600.0], ids=["behind", "ahead"])
async def test_a_delay_does_not_count_from_the_clock_of_its_producer(
    app: Tidework, monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    @app.task
    def work() -> None: ...

    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + off)
    handle = await work.options(delay=60).enqueue()
    monkeypatch.undo()

    found = await handle.get()
    assert found.state is JobState.SCHEDULED
    assert found.available_at is not None
    assert 0 < found.available_at.timestamp() - time.time() <= 60


@pytest.mark.parametrize("delay", [1e15, -1e15])
def test_a_delay_beyond_all_times_is_refused(app: Tidework, delay: float) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises((EnvelopeError, ConfigurationError), match="delay"):
        work.options(delay=delay).enqueue_sync()
