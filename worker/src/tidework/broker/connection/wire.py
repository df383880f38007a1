"""Connections of programs with an event loop: requests in one write, replies as they come.

redis-py connects and logs in. Then, where hiredis is installed, a Wire takes the socket over:
redis-py's own way there and back costs several times what the request does. Without hiredis
redis-py goes on. Either way nothing is sent twice, and whoever was cancelled or met an error
has the connection ended: replies may be on their way that nobody reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import redis.asyncio
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from tidework.broker.connection.abandoned import abandon_transport
from tidework.broker.connection.packing import Command, hiredis, pack, words_of
from tidework.broker.connection.redis_py import (
    error_maker_of,
    is_open,
    take_writer,
    transport_of,
)
from tidework.broker.connection.sieve import Sieve
from tidework.broker.connection.silence import Silence

TAKES_A_DOCUMENT = "BLMOVE"
"""The one command whose reply is as long as a foreign program likes."""
_NOTHING_YET = object()


class Connection(Protocol):
    """One connection, used by one caller at a time."""

    def is_usable(self) -> bool:
        """Is it open, and free of replies to somebody else?"""

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Replies in order, an error reply in its place. Raises RedisError and OSError."""

    async def end(self, *, at_once: bool) -> None:
        """Close it; ``at_once``: without waiting for it to be closed."""

    def abandon(self) -> None:
        """Close it without its event loop."""


class _Plain:
    """redis-py reads and writes."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._silence = _silence_of(connection)

    def is_usable(self) -> bool:
        return is_open(self._connection) and self._silence.holds()

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        connection = self._connection
        await connection.send_packed_command(connection.pack_commands(map(words_of, commands)))
        replies: list[Any] = []
        for _ in commands:
            try:
                replies.append(await connection.read_response())
            except ResponseError as error:
                replies.append(error)
        return replies

    async def end(self, *, at_once: bool) -> None:
        await self._connection.disconnect(nowait=at_once)

    def abandon(self) -> None:
        _abandon(self._connection)


class _Wire(asyncio.Protocol):
    """We read and write, over the transport of a connection that redis-py has made."""

    def __init__(self, connection: AbstractConnection, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._transport = transport_of(connection)
        self._silence = _silence_of(connection)
        self._former = self._transport.get_protocol()
        self._reader = hiredis.Reader(
            protocolError=InvalidResponse,
            replyError=error_maker_of(connection),
            notEnoughData=_NOTHING_YET,
        )
        self._replies: list[Any] = []
        self._awaited = 0
        self._sieve: Sieve | None = None
        self._answer: asyncio.Future[list[Any]] | None = None
        self._open = True
        self._transport.set_protocol(self)

    def is_usable(self) -> bool:
        return self._open and self._silence.holds()

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        if not self._open:
            raise RedisConnectionError("the connection is closed")
        packed = pack(commands)
        self._replies, self._awaited = [], len(commands)
        self._sieve = Sieve() if commands[0][0] == TAKES_A_DOCUMENT else None
        answer = self._answer = self._loop.create_future()
        late = self._loop.call_later(self._timeout_s, self._fail, RedisTimeoutError("no reply"))
        self._transport.write(packed)
        try:
            replies: list[Any] = await answer
        finally:
            late.cancel()
            self._answer = None
        return replies

    async def end(self, *, at_once: bool) -> None:
        self._open = False
        await self._connection.disconnect(nowait=at_once)

    def abandon(self) -> None:
        self._open, self._answer = False, None
        _abandon(self._connection)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data if self._sieve is None else self._sieve.pass_on(data))
        try:
            while (reply := self._reader.gets()) is not _NOTHING_YET:
                self._take(reply)
        except InvalidResponse as error:
            self._fail(error)

    def _take(self, reply: Any) -> None:
        if self._answer is None or self._answer.done() or not self._awaited:
            self._open = False  # nobody asked: what it answers to next cannot be told
            return
        if isinstance(reply, Exception) and not isinstance(reply, ResponseError):
            self._fail(reply)
            return
        if self._sieve is not None and not self._replies:
            reply = self._sieve.named(reply)
        self._replies.append(reply)
        self._awaited -= 1
        if not self._awaited:
            self._answer.set_result(self._replies)

    def _fail(self, error: Exception) -> None:
        self._open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def eof_received(self) -> None:
        self._fail(RedisConnectionError("connection closed by the server"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or RedisConnectionError("connection closed"))
        self._former.connection_lost(exc)  # redis-py waits for it when it closes

    def pause_writing(self) -> None:
        """Of asyncio.Protocol: a request is as long as it is, the transport keeps the rest."""

    def resume_writing(self) -> None:
        """Nothing to do: nobody waits for room."""


def _abandon(connection: AbstractConnection) -> None:
    writer = take_writer(connection)
    if writer is not None:
        abandon_transport(writer.transport)


def _silence_of(connection: AbstractConnection) -> Silence:
    return Silence(transport_of(connection).get_extra_info("socket"))


class Connections:
    """A bounded number of connections to one place, made when needed.

    options: redis-py's, with ``max_connections`` and seconds to wait for one as ``timeout``
    """

    def __init__(self, options: dict[str, Any]) -> None:
        # The pool only knows how to make one: which class, which options.
        self._maker = redis.asyncio.ConnectionPool(
            retry=Retry(NoBackoff(), 0),
            **{name: value for name, value in options.items() if name != "timeout"},
        )
        self.parsers = redis.asyncio.Redis(connection_pool=self._maker).response_callbacks
        self._wait_s: float = options["timeout"]
        self._timeout_s: float = options["socket_timeout"]
        self._places = asyncio.Semaphore(options["max_connections"])
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()

    async def take(self) -> Connection:
        """One that is free, or a new one. Raises RedisError and OSError."""
        if self._places.locked():
            try:
                async with asyncio.timeout(self._wait_s):
                    await self._places.acquire()
            except TimeoutError:
                raise RedisConnectionError("no connection is free") from None
        else:
            await self._places.acquire()
        try:
            while self._idle:
                found = self._idle.pop()
                if found.is_usable():
                    return found
                await self._drop(found)
            return await self._connect()
        except BaseException:
            self._places.release()
            raise

    async def _connect(self) -> Connection:
        made = self._maker.make_connection()  # type: ignore[no-untyped-call]
        try:
            await made.connect()
            found: Connection = _Plain(made) if hiredis is None else _Wire(made, self._timeout_s)
        except BaseException:
            await made.disconnect(nowait=True)
            raise
        self._all.add(found)
        return found

    def give_back(self, connection: Connection) -> None:
        """Somebody else may have it."""
        self._idle.append(connection)
        self._places.release()

    async def give_up(self, connection: Connection) -> None:
        """It is of no use any more."""
        self._places.release()
        await self._drop(connection)

    async def _drop(self, connection: Connection, *, at_once: bool = True) -> None:
        self._all.discard(connection)
        await connection.end(at_once=at_once)

    async def end_idle(self) -> None:
        """Close those that nobody uses."""
        idle, self._idle = self._idle, []
        for connection in idle:
            await self._drop(connection)

    async def end_all(self) -> None:
        """Close all; whoever waits for a reply is told so."""
        self._idle = []
        for connection in list(self._all):
            await self._drop(connection, at_once=False)

    def abandon(self) -> None:
        """Close all without their event loop, and tell nobody."""
        of_loop, self._all, self._idle = self._all, set(), []
        for connection in of_loop:
            connection.abandon()
