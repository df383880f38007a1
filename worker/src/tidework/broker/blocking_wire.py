"""Connections of programs without an event loop, shared by their threads.

As in ``wire``, redis-py connects and logs in, and where hiredis is installed we write and read.
A connection that is not in use is looked at before it is used again: one that the server has
closed meanwhile is replaced, and nothing was sent over it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Protocol, cast

import redis
from redis.backoff import NoBackoff
from redis.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from tidework.broker.packing import Command, hiredis, pack, words_of
from tidework.broker.silence import Silence

_READ_BYTES = 65_536
_NOTHING_YET = object()


class BlockingConnection(Protocol):
    """One connection, used by one thread at a time."""

    def is_usable(self) -> bool:
        """Is it open, and free of replies to somebody else?"""

    def send(self, commands: Sequence[Command]) -> list[Any]:
        """Replies in order, an error reply in its place. Raises RedisError and OSError."""

    def end(self) -> None:
        """Close it."""


class _Plain:
    """redis-py reads and writes."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection

    def is_usable(self) -> bool:
        try:
            return not self._connection.can_read()
        except (RedisError, OSError):
            return False

    def send(self, commands: Sequence[Command]) -> list[Any]:
        connection = self._connection
        packed = connection.pack_commands(map(words_of, commands))  # type: ignore[no-untyped-call]
        connection.send_packed_command(packed)  # type: ignore[no-untyped-call]
        replies: list[Any] = []
        for _ in commands:
            try:
                replies.append(connection.read_response())
            except ResponseError as error:
                replies.append(error)
        return replies

    def end(self) -> None:
        self._connection.disconnect()  # type: ignore[no-untyped-call]


class _Wire:
    """We write and read, over the socket of a connection that redis-py has made."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._socket = cast("socket.socket", connection._sock)  # noqa: SLF001 - no other way to it
        self._silence = Silence(self._socket)
        self._buffer = bytearray(_READ_BYTES)
        self._reader = hiredis.Reader(
            protocolError=InvalidResponse,
            replyError=connection._parser.parse_error,  # noqa: SLF001 - one list of error classes
            notEnoughData=_NOTHING_YET,
        )

    def is_usable(self) -> bool:
        return self._silence.holds() and not self._reader.has_data()

    def send(self, commands: Sequence[Command]) -> list[Any]:
        packed, reader = pack(commands), self._reader
        replies: list[Any] = []
        try:
            self._socket.sendall(packed)
            while len(replies) < len(commands):
                reply = reader.gets()
                if reply is _NOTHING_YET:
                    count = self._socket.recv_into(self._buffer)
                    if not count:
                        raise RedisConnectionError("connection closed by the server")
                    reader.feed(self._buffer, 0, count)
                elif isinstance(reply, Exception) and not isinstance(reply, ResponseError):
                    raise reply
                else:
                    replies.append(reply)
        except TimeoutError as error:
            raise RedisTimeoutError("no reply in time") from error
        return replies

    def end(self) -> None:
        self._connection.disconnect()  # type: ignore[no-untyped-call]


class BlockingConnections:
    """A bounded number of connections to one place, made when needed, by each process its own.

    options: redis-py's, with ``max_connections`` and seconds to wait for one as ``timeout``
    """

    def __init__(self, options: dict[str, Any]) -> None:
        # The pool only knows how to make one: which class, which options.
        self._maker = redis.ConnectionPool(
            retry=Retry(NoBackoff(), 0),
            **{name: value for name, value in options.items() if name != "timeout"},
        )
        self.parsers = redis.Redis(connection_pool=self._maker).response_callbacks
        self._wait_s: float = options["timeout"]
        self._most: int = options["max_connections"]
        self._begin()

    def _begin(self) -> None:
        # Both are changed by threads at once, in single steps of the interpreter.
        self._idle: list[BlockingConnection] = []
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(self._most):
            self._places.put(None)
        self._closed = False
        self._pid = os.getpid()

    def take(self) -> BlockingConnection:
        """One that is free, or a new one. Raises RedisError and OSError."""
        if self._pid != os.getpid():
            self._begin()  # a fork's child closes the sockets of its parent and tells nobody
        try:
            self._places.get(timeout=self._wait_s)
        except Empty:
            raise RedisConnectionError("no connection is free") from None
        try:
            while self._idle:
                with suppress(IndexError):  # another thread may be faster
                    found = self._idle.pop()
                    if found.is_usable():
                        return found
                    found.end()
            return self._connect()
        except BaseException:
            self._places.put(None)
            raise

    def _connect(self) -> BlockingConnection:
        made = self._maker.connection_class(**self._maker.connection_kwargs)
        try:
            made.connect()
        except BaseException:
            made.disconnect()
            raise
        return _Plain(made) if hiredis is None else _Wire(made)

    def give_back(self, connection: BlockingConnection) -> None:
        """Somebody else may have it."""
        self._idle.append(connection)
        self._places.put(None)
        if self._closed:
            self.end_idle()

    def give_up(self, connection: BlockingConnection) -> None:
        """It is of no use any more: replies may be on their way that nobody reads."""
        connection.end()
        self._places.put(None)

    def end_idle(self) -> None:
        """Close those that nobody uses."""
        while self._idle:
            with suppress(IndexError):  # another thread may be faster
                self._idle.pop().end()

    def end_all(self) -> None:
        """Close all; what another thread uses right now ends with its call."""
        self._closed = True
        self.end_idle()
