"""The address leads to another server than before: nobody stays with the old one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from tests.support.servers import ValkeyServer
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect, connect_blocking
from tidework.errors import BrokerUnavailableError
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState

QUEUE = QueueName("faults", "q")


class Address:
    """Forwards new connections to ``port``; those that stand stay where they lead."""

    def __init__(self) -> None:
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._forward(reader, writer))
        self._tasks.add(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, to_writer))
                group.create_task(_pump(to_reader, writer))
        finally:
            for end in (writer, to_writer):
                end.close()
                with contextlib.suppress(ConnectionError):
                    await end.wait_closed()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
        target.write_eof()


@pytest.fixture
def servers() -> Iterator[tuple[ValkeyServer, ValkeyServer]]:
    with ValkeyServer() as first, ValkeyServer() as second:
        yield first, second


@pytest.fixture
async def address(servers: tuple[ValkeyServer, ValkeyServer]) -> AsyncIterator[Address]:
    found = Address()
    found.port = servers[0].port
    await found.open()
    yield found
    await found.close()


def fail_over(address: Address, servers: tuple[ValkeyServer, ValkeyServer]) -> None:
    """The first becomes a replica, and keeps its connections; the address leads to the second."""
    old, new = servers
    with old.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", str(new.port))
    address.port = new.port


async def test_a_demoted_primary_is_left(
    address: Address, servers: tuple[ValkeyServer, ValkeyServer]
) -> None:
    broker = connect(address.url)
    try:
        await broker.enqueue(QUEUE, [Job("a", "t", {})])
        waiting = asyncio.ensure_future(broker.wait_for_document(QUEUE, timedelta(seconds=20)))
        assert await waiting == b"!"
        fail_over(address, servers)
        with pytest.raises(BrokerUnavailableError, match="read-only"):
            await broker.enqueue(QUEUE, [Job("b", "t", {})])

        await broker.enqueue(QUEUE, [Job("b", "t", {})])

        assert (await broker.stats(QUEUE)).states[JobState.READY] == 1
        with pytest.raises(BrokerUnavailableError, match="read-only"):
            await broker.wait_for_document(QUEUE, timedelta(seconds=20))
        assert await broker.wait_for_document(QUEUE, timedelta(seconds=20)) == b"!"
    finally:
        await broker.close()


async def test_upkeep_leaves_a_demoted_primary(
    address: Address, servers: tuple[ValkeyServer, ValkeyServer]
) -> None:
    broker = connect(address.url)
    try:
        await broker.upkeep(QUEUE)
        fail_over(address, servers)
        with pytest.raises(BrokerUnavailableError, match="read-only"):
            await broker.upkeep(QUEUE)

        await broker.upkeep(QUEUE)
    finally:
        await broker.close()


async def test_a_program_without_an_event_loop_leaves_it_too(
    address: Address, servers: tuple[ValkeyServer, ValkeyServer]
) -> None:
    broker = connect_blocking(address.url)

    def put(name: str) -> None:
        drive(broker.enqueue(QUEUE, [Job(name, "t", {})]))

    try:
        await asyncio.to_thread(put, "a")
        fail_over(address, servers)
        with pytest.raises(BrokerUnavailableError, match="read-only"):
            await asyncio.to_thread(put, "b")

        await asyncio.to_thread(put, "b")
    finally:
        drive(broker.close())
