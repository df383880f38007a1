"""Connections of programs without an event loop, shared by their threads.

As in ``wire``, redis-py connects and logs in, and where hiredis is installed we write and read.
A connection that is not in use is looked at before it is used again: one that the server has
closed meanwhile is replaced, and nothing was sent over it.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import redis
from redis.backoff import NoBackoff
from redis.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from tidework.broker.connection.packing import Command, hiredis, pack, words_of
from tidework.broker.connection.redis_py import error_maker_of, socket_of
from tidework.broker.connection.silence import Silence

_READ_BYTES = 65_536
_NOTHING_YET = object()
_LOOK_AGAIN_S = 0.1
"""A connection that was lost wakes nobody who waits for one."""


class BlockingConnection(Protocol):
    """One connection, used by one thread at a time. ``made``: by redis-py."""

    made: AbstractConnection

    def is_usable(self) -> bool:
        """Is it open, and free of replies to somebody else?"""

    def send(self, commands: Sequence[Command]) -> list[Any]:
        """Replies in order, an error reply in its place. Raises RedisError and OSError."""


class _Plain:
    """redis-py reads and writes."""

    def __init__(self, connection: AbstractConnection) -> None:
        self.made = connection

    def is_usable(self) -> bool:
        try:
            return not self.made.can_read()
        except (RedisError, OSError):
            return False

    def send(self, commands: Sequence[Command]) -> list[Any]:
        connection = self.made
        packed = connection.pack_commands(map(words_of, commands))  # type: ignore[no-untyped-call]
        connection.send_packed_command(packed)  # type: ignore[no-untyped-call]
        replies: list[Any] = []
        for _ in commands:
            try:
                replies.append(connection.read_response())
            except ResponseError as error:
                replies.append(error)
        return replies


class _Wire:
    """We write and read, over the socket of a connection that redis-py has made."""

    def __init__(self, connection: AbstractConnection) -> None:
        self.made = connection
        self._socket = socket_of(connection)
        self._silence = Silence(self._socket)
        self._buffer = bytearray(_READ_BYTES)
        self._reader = hiredis.Reader(
            protocolError=InvalidResponse,
            replyError=error_maker_of(connection),
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


class BlockingConnections:
    """A bounded number of connections to one place, made when needed, by each process its own.

    A signal handler may raise between any two steps. So nothing is counted: connections that are
    open are known by weak references, and one that such an exception has lost is closed, and
    makes room, with the last reference to it.

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
        # C alone, and safe within itself: a handler may use the connections as well.
        self._lock = threading.RLock()
        self._open: set[weakref.ref[AbstractConnection]] = set()
        self._idle: SimpleQueue[BlockingConnection | None] = SimpleQueue()
        self._closed = False
        self._pid = os.getpid()

    def take(self) -> BlockingConnection:
        """One that is free, or a new one. Raises RedisError and OSError."""
        if self._pid != os.getpid():
            self.abandon()
        wait, until = 0.0, 0.0
        while True:
            found = self._next_idle(wait)
            if found is not None:
                if found.is_usable():
                    return found
                self.give_up(found)
            elif (made := self._make()) is not None:
                return self._connect(made)
            else:
                now = time.monotonic()
                until = until or now + self._wait_s
                if now >= until:
                    raise RedisConnectionError("no connection is free")
                wait = min(until - now, _LOOK_AGAIN_S)

    def _next_idle(self, wait: float) -> BlockingConnection | None:
        try:
            return self._idle.get(wait > 0, wait)
        except Empty:
            return None

    def _make(self) -> AbstractConnection | None:
        """One that is not connected yet; None if there are as many as there may be."""
        with self._lock:
            if len(self._open) >= self._most:
                return None
            made: AbstractConnection = self._maker.connection_class(**self._maker.connection_kwargs)
            self._open.add(weakref.ref(made, self._open.discard))
            return made

    def _connect(self, made: AbstractConnection) -> BlockingConnection:
        try:
            made.connect()  # type: ignore[no-untyped-call]
            # Closed before the collector finds the socket by itself and warns of it.
            weakref.finalize(made, socket_of(made).close).atexit = False
            return _Plain(made) if hiredis is None else _Wire(made)
        except BaseException:
            self._end(made)
            raise

    def give_back(self, connection: BlockingConnection) -> None:
        """Somebody else may have it."""
        self._idle.put(connection)
        if self._closed:
            self.end_idle()

    def give_up(self, connection: BlockingConnection) -> None:
        """It is of no use any more: replies may be on their way that nobody reads."""
        self._end(connection.made)

    def _end(self, made: AbstractConnection) -> None:
        was_full = len(self._open) >= self._most
        try:
            made.disconnect()  # type: ignore[no-untyped-call]
        finally:
            self._open.discard(weakref.ref(made))
            if was_full:
                self._idle.put(None)  # whoever waits makes one

    def end_idle(self) -> None:
        """Close those that nobody uses."""
        for _ in range(self._idle.qsize()):
            found = self._next_idle(0)  # another thread may be faster
            if found is not None:
                self.give_up(found)

    def end_all(self) -> None:
        """Close all; what another thread uses right now ends with its call."""
        self._closed = True
        self.end_idle()

    def abandon(self) -> None:
        """After a fork: close the child's copies of its parent's sockets, and tell nobody."""
        of_parent = [found for known in list(self._open) if (found := known()) is not None]
        self._begin()
        for made in of_parent:
            made.disconnect()  # type: ignore[no-untyped-call]
