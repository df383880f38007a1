"""Every test of this folder runs on the memory model and on real servers."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import redis

from tests.support.fixtures import namespace, redis_server, redis_url, valkey
from tests.support.leaks import no_leaks
from tests.support.waiting import let_turn, until
from tidework.broker.broker import Broker
from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.clock import ManualClock
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import (
    ExchangeReply,
    ExchangeRequest,
    QueueLimits,
    RunTimes,
    Settlement,
)
from tidework.testing.memory.broker import MemoryBroker

__all__ = ["namespace", "no_leaks", "redis_server", "redis_url", "valkey"]

LEASE = timedelta(milliseconds=400)


class Kit:
    """A broker under test, and the few things that tests of a contract do to it."""

    def __init__(self, kind: str, url: str, queue: QueueName) -> None:
        self.queue = queue
        self._kind = kind
        self._url = url
        self._clock = ManualClock(datetime.now(UTC))
        self._made: list[Broker] = []
        self._sequences: dict[str, int] = {}
        self.broker = self.make(QueueLimits(lease=LEASE))

    def make(self, limits: QueueLimits) -> Broker:
        """A broker on the same data, with other limits (memory: on data of its own)."""
        broker: Broker
        if self._kind == "memory":
            broker = MemoryBroker(self._clock, limits)
        else:
            broker = connect(self._url, limits)
        self._made.append(broker)
        return broker

    def use(self, limits: QueueLimits) -> None:
        """Go on with a broker of other limits."""
        self.broker = self.make(limits)

    @property
    def now(self) -> float:
        """Unix seconds, as the broker sees them."""
        return self._clock.now().timestamp() if self._kind == "memory" else time.time()

    async def let_pass(self, span: timedelta) -> None:
        """Time goes by."""
        if self._kind == "memory":
            self._clock.advance(span)
        else:
            await asyncio.sleep(span.total_seconds())  # the clock is the server's

    async def until_one_waits(self) -> None:
        """Until a request that was begun waits for work."""
        if isinstance(self.broker, RedisBroker):
            with redis.Redis.from_url(self._url) as client:
                await until(
                    lambda: client.info("clients")["blocked_clients"], "somebody waits for work"
                )
        else:
            await let_turn()

    async def put(self, *jobs: Job) -> tuple[bool, ...]:
        """Enqueue; whether each was inserted."""
        return tuple(e.inserted for e in await self.broker.enqueue(self.queue, jobs))

    async def put_document(self, raw: bytes) -> None:
        """What a foreign program does."""
        if isinstance(self.broker, MemoryBroker):
            await self.broker.put_document(self.queue, raw)
        else:
            assert isinstance(self.broker, RedisBroker)
            key = f"tw1:{{{self.queue}}}:inbox"
            await self.broker.transport.command("LPUSH", key, raw)

    async def exchange(
        self,
        *settlements: Settlement,
        want: int = 0,
        worker: str = "w1",
        sequence: int | None = None,
        woken: bool = False,
        served: dict[str, RunTimes] | None = None,
    ) -> ExchangeReply:
        """One exchange of ``worker``, with the next sequence unless given."""
        if sequence is None:
            sequence = self._sequences.get(worker, 0) + 1
            self._sequences[worker] = sequence
        request = ExchangeRequest(worker, sequence, want, settlements, woken, served or {})
        return await self.broker.exchange(self.queue, request)

    async def close(self) -> None:
        """Give back connections."""
        for broker in self._made:
            await broker.close()


@pytest.fixture(params=["memory", "valkey", "redis"])
async def kit(request: pytest.FixtureRequest) -> AsyncIterator[Kit]:
    """A fresh queue on each kind of broker."""
    url = ""
    if request.param == "valkey":
        url = request.getfixturevalue("valkey").url
    elif request.param == "redis":
        url = request.getfixturevalue("redis_server").url
    found = Kit(request.param, url, QueueName(f"t-{secrets.token_hex(6)}", "emails"))
    await found.broker.open_queue(found.queue)
    yield found
    await found.close()
