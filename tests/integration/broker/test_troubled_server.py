"""Every script and plain command, on a server that is full, a replica, loading, away, without disk.

Refused is what the table says, with what, where and how to mend it; it has changed nothing, and the
same request is answered once the trouble is over.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import tidework.broker
from tests.integration.broker.queue_dump import differences
from tests.integration.broker.rig import Rig
from tests.integration.broker.trouble_table import (
    DONE,
    LOADING,
    PLAIN,
    SAMPLES,
    TABLE,
    End,
    Trouble,
)
from tests.support.proxy import Fate, Proxy, script_names
from tests.support.servers import ValkeyServer, free_port, loading, redis_binary
from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.errors import BrokerError
from tidework.model.identity import QueueName

IN_PLACE = [trouble for trouble in Trouble if trouble is not Trouble.LOADING]
ON_BOTH = {Trouble.FULL, Trouble.DEMOTED, Trouble.CUT_OFF, Trouble.DISK}
"""Where the words of two servers may differ."""
OPENING = frozenset({"open_queue", "register"})
CASES = [
    pytest.param(kind, trouble, name, id=f"{trouble.name.lower()}-{name}-{kind}")
    for trouble in IN_PLACE
    for name in TABLE
    for kind in ("valkey", "redis")[: 1 + (trouble in ON_BOTH)]
]


def test_every_request_has_a_row() -> None:
    scripts = set(script_names().values())
    assert not scripts & PLAIN

    assert set(TABLE) == scripts | PLAIN == set(SAMPLES)
    assert all(set(row) == set(Trouble) for row in TABLE.values())


def test_every_plain_command_is_known() -> None:
    sources = Path(tidework.broker.__file__).parent.rglob("*.py")
    text = "\n".join(source.read_text() for source in sources)
    found = re.findall(r'(?:\.command\(|Request\([^"\n]+)\s*"([A-Z]+)"', text)

    assert {word.lower() for word in found} == PLAIN


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, ValkeyServer]]:
    """They are for this module alone: their role and their memory change."""
    binary = redis_binary()
    with ValkeyServer() as valkey:
        if binary is None:
            yield {"valkey": valkey}
            return
        with ValkeyServer(binary) as redis:
            yield {"valkey": valkey, "redis": redis}


@asynccontextmanager
async def rig_on(server: ValkeyServer) -> AsyncIterator[Rig]:
    queue = QueueName(f"t-{secrets.token_hex(6)}", "q")
    async with Proxy(server.port) as proxy:
        with server.client() as client:
            rig = Rig(server.url, proxy, client, queue)
            try:
                yield rig
            finally:
                await rig.close()


@asynccontextmanager
async def in_trouble(
    rig: Rig, server: ValkeyServer, trouble: Trouble, name: str
) -> AsyncIterator[RedisBroker]:
    """A broker that meets it."""
    broker = connect(rig.url)
    try:
        if trouble is Trouble.AWAY:
            await broker.close()
            broker = connect(f"redis://127.0.0.1:{free_port()}/0")
        elif trouble is Trouble.GOES:
            await broker.close()
            broker = connect(rig.proxy.url)
            await get_ready(rig, broker, name)
            rig.proxy.catch(name, Fate.LOSE_REQUEST)
        elif trouble is not Trouble.REPLICA:
            await get_ready(rig, broker, name)
        begin(server, trouble)
        yield broker
    finally:
        await broker.close()
        end(server)


async def get_ready(rig: Rig, broker: RedisBroker, name: str) -> None:
    """It has a connection, and has opened the queue unless that is the request."""
    await broker.stats(rig.queue)
    if name not in OPENING:
        await broker.open_queue(rig.queue)


def begin(server: ValkeyServer, trouble: Trouble) -> None:
    with server.client() as client:
        if trouble is Trouble.FULL:
            client.config_set("maxmemory", 1)
        if trouble is Trouble.CUT_OFF:
            client.config_set("replica-serve-stale-data", "no")
        if trouble in (Trouble.REPLICA, Trouble.DEMOTED, Trouble.CUT_OFF):
            # Of nobody: it keeps what it has.
            client.execute_command("REPLICAOF", "127.0.0.1", str(free_port()))
    if trouble is Trouble.DISK:
        server.deny_disk()


def end(server: ValkeyServer) -> None:
    with server.client() as client:
        client.execute_command("REPLICAOF", "NO", "ONE")
        client.config_set("replica-serve-stale-data", "yes")
        client.config_set("maxmemory", 0)
    server.allow_disk()


async def ask(rig: Rig, broker: RedisBroker, name: str) -> BrokerError | None:
    try:
        await SAMPLES[name].call(rig, broker)
    except BrokerError as error:
        return error
    return None


def check(error: BrokerError | None, expected: End) -> None:
    if expected.kind is None:
        assert error is None
        return
    assert type(error) is expected.kind
    assert expected.words in str(error)
    assert re.search(r"Redis at 127\.0\.0\.1:\d+ ", str(error)), "where"
    assert re.search(r"; (try again|point|raise|check|look)", str(error)), "how to mend it"


@pytest.mark.parametrize(("kind", "trouble", "name"), CASES)
async def test_a_request_in_trouble(
    servers: dict[str, ValkeyServer], kind: str, trouble: Trouble, name: str
) -> None:
    if kind not in servers:
        pytest.skip("redis-server is not on the PATH; Valkey runs the same rows")
    sample, expected = SAMPLES[name], TABLE[name][trouble]
    async with rig_on(servers[kind]) as rig:
        await rig.fill()
        await sample.before(rig)
        before = await rig.dump()
        async with in_trouble(rig, servers[kind], trouble, name) as broker:
            error = await ask(rig, broker, name)
        after = await rig.dump()

        check(error, expected)
        if expected is DONE:
            assert sample.unseen or differences(before, after), "it did nothing"
            return
        assert differences(before, after) == {}, "it was refused, and did something"
        assert await ask(rig, rig.through, name) is None
        assert sample.unseen or differences(before, await rig.dump())


@pytest.fixture(scope="module")
def slow_loader() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server, loading(server):
        yield server


@pytest.mark.parametrize("name", TABLE)
async def test_a_request_to_a_server_that_loads(slow_loader: ValkeyServer, name: str) -> None:
    async with rig_on(slow_loader) as rig:
        error = await ask(rig, rig.broker, name)

    check(error, LOADING)
