"""Connections to servers: timeouts, resends, and what was sent when something went wrong.

redis-py resends silently by default, and its timeouts are its own; both are set here, explicitly:
no resend, 5 s per reply. Commands are written to a connection and their replies read from it
without redis-py's clients, so that three things are certain: what belongs together goes over
one connection, nothing goes out twice, and an error says whether anything went out.

An event loop and a blocking program differ in this module and in their connections (``wire``,
``blocking_wire``) only. The blocking half never suspends, so that the same coroutines serve
programs without an event loop (see ``drive``).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from redis.asyncio.connection import parse_url as parse_async_url
from redis.connection import parse_url as parse_blocking_url
from redis.exceptions import RedisError

from tidework.broker.connection.blocking_wire import BlockingConnections
from tidework.broker.connection.credentials import login_options
from tidework.broker.connection.packing import Command, Packer, Words, hiredis
from tidework.broker.connection.wire import Connections
from tidework.model.redis_url import Login, Place, RedisUrl

REPLY_TIMEOUT_S = 5.0
MOST_CONNECTIONS = 32
MOST_BLOCKED = 10_000
"""Connections on which a command blocks: each caller has one, and none may wait for another's."""
T = TypeVar("T")


class NotSentError(Exception):
    """No connection could be had: nothing was sent."""

    def __init__(self, reason: RedisError | OSError) -> None:
        self.reason = reason
        super().__init__(str(reason))


class Server(Protocol):
    """A bounded number of connections to one place."""

    facts: dict[str, Any] | None
    """INFO of the server; None until it was asked, and again after trouble."""

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """All of them over one connection in one go, their replies in order.

        An error with which the server answers a command stands in the place of its reply.
        Raises NotSentError, or RedisError and OSError if it is unknown what has been done.
        """

    def read(self, words: Words, reply: Any) -> Any:
        """A raw reply in redis-py's form: a dict for HGETALL..."""

    async def leave(self) -> None:
        """Connect anew for what comes: the place may lead to another server by now."""

    async def close(self) -> None:
        """End all connections."""

    def abandon(self) -> None:
        """As ``close``, without the event loop or the process that they belong to."""


async def ask(server: Server, words: Words) -> Any:
    """The raw reply to one command. Raises RedisError and OSError."""
    try:
        (reply,) = await server.send([words])
    except NotSentError as error:
        raise error.reason from error
    if isinstance(reply, Exception):
        raise reply
    return reply


class Turns(Protocol):
    """One act at a time."""

    async def take(self, act: Callable[[], Awaitable[T]]) -> T:
        """Do it when all those before are done."""


class Side(Protocol):
    """What differs between programs with an event loop and those without."""

    def open(self, options: dict[str, Any]) -> Server:
        """A server by redis-py's options; no I/O yet."""

    def options(self, url: RedisUrl) -> dict[str, Any]:
        """Of redis-py, for every server of ``url``."""

    def turns(self) -> Turns:
        """For the program's users of a transport."""

    async def together(self, acts: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
        """Do all of them, at once if possible. None may raise."""


def _given(url: RedisUrl, parse: Callable[[str], Any]) -> dict[str, Any]:
    """What the URL asks for, by redis-py's own reading of its options."""
    scheme = "unix" if url.places[0].path else "rediss" if url.tls else "redis"
    return {"client_name": "tidework", **parse(f"{scheme}://?{url.options}"), "db": url.database}


def _options(login: Login, timeout_s: float, *, is_socket: bool) -> dict[str, Any]:
    options: dict[str, Any] = {
        # One call more than there are connections waits for one, instead of failing.
        "timeout": REPLY_TIMEOUT_S,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": min(timeout_s, REPLY_TIMEOUT_S),
        "health_check_interval": 0,
        "protocol": 2,
        # It would tell the library's name with a command that not every role may use.
        "driver_info": None,
        **login_options(login),
    }
    if not is_socket:
        options["socket_keepalive"] = True
    return options


class Servers:
    """The servers of one transport, by place; opened when asked for.

    timeout_s: for a reply. A blocked command needs connections that wait longer.
    most:      connections to one place
    """

    def __init__(
        self,
        side: Side,
        url: RedisUrl,
        login: Login,
        timeout_s: float,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        self._side = side
        is_socket = bool(url.places[0].path)
        options = _options(login, timeout_s, is_socket=is_socket)
        self._options = side.options(url) | options | {"max_connections": most}
        self.opened: dict[Place, Server] = {}

    def at(self, place: Place) -> Server:
        """The server at a place."""
        found = self.opened.get(place)
        if found is None:
            where = {"path": place.path} if place.path else {"host": place.host, "port": place.port}
            found = self._side.open(self._options | where)
            # Two threads may both have opened one: the first counts, no connection is lost.
            found = self.opened.setdefault(place, found)
        return found

    async def keep(self, places: Sequence[Place]) -> None:
        """Close the connections to all other places; whoever waits there is told so."""
        for place in set(self.opened) - set(places):
            await self.opened.pop(place).close()

    async def close(self) -> None:
        """Close all connections."""
        await self.keep(())

    def abandon(self) -> None:
        """As ``close``, without the event loop or the process that they belong to."""
        while self.opened:
            self.opened.popitem()[1].abandon()


def _in_form(parsers: Any, words: Words, reply: Any) -> Any:
    parser = parsers.get(words[0])
    return reply if parser is None else parser(reply)


class _AsyncServer:
    def __init__(self, options: dict[str, Any]) -> None:
        self.facts: dict[str, Any] | None = None
        self._connections = Connections(options)

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        try:
            connection = await self._connections.take()
        except (RedisError, OSError) as error:
            raise NotSentError(error) from error
        try:
            replies = await connection.send(commands)
        except BaseException:
            await self._connections.give_up(connection)
            raise
        self._connections.give_back(connection)
        return replies

    def read(self, words: Words, reply: Any) -> Any:
        return _in_form(self._connections.parsers, words, reply)

    async def leave(self) -> None:
        self.facts = None
        await self._connections.end_idle()

    async def close(self) -> None:
        self.facts = None
        await self._connections.end_all()

    def abandon(self) -> None:
        self.facts = None
        self._connections.abandon()


class _AsyncTurns:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self, act: Callable[[], Awaitable[T]]) -> T:
        async with self._lock:
            return await act()


class AsyncSide:
    """For programs with an event loop."""

    def open(self, options: dict[str, Any]) -> Server:
        return _AsyncServer(options)

    def options(self, url: RedisUrl) -> dict[str, Any]:
        return _given(url, parse_async_url)

    def turns(self) -> Turns:
        return _AsyncTurns()

    async def together(self, acts: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
        if len(acts) == 1:
            return [await acts[0]()]
        return list(await asyncio.gather(*(act() for act in acts)))


class _BlockingServer:
    """As _AsyncServer, in a thread of the caller."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.facts: dict[str, Any] | None = None
        self._connections = BlockingConnections(options)

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        try:
            connection = self._connections.take()
        except (RedisError, OSError) as error:
            raise NotSentError(error) from error
        try:
            replies = connection.send(commands)
        except BaseException:
            self._connections.give_up(connection)
            raise
        self._connections.give_back(connection)
        return replies

    def read(self, words: Words, reply: Any) -> Any:
        return _in_form(self._connections.parsers, words, reply)

    async def leave(self) -> None:
        self.facts = None
        self._connections.end_idle()

    async def close(self) -> None:
        self.facts = None
        self._connections.end_all()

    def abandon(self) -> None:
        self.facts = None
        self._connections.abandon()


class _BlockingTurns:
    """The lock's own ``with`` leaves no step in which a signal handler that raises would leave it
    taken; a handler that asks itself in the midst of it does not wait for what it interrupted."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    async def take(self, act: Callable[[], Awaitable[T]]) -> T:
        with self._lock:
            return await act()


class BlockingSide:
    """For programs without an event loop."""

    def open(self, options: dict[str, Any]) -> Server:
        return _BlockingServer(options)

    def options(self, url: RedisUrl) -> dict[str, Any]:
        options = _given(url, parse_blocking_url)
        return options if hiredis is None else options | {"command_packer": Packer()}

    def turns(self) -> Turns:
        return _BlockingTurns()

    async def together(self, acts: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
        return [await act() for act in acts]
