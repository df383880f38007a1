"""Brings requests to the servers that serve their keys, and their replies back.

redis-py resends nothing here (see ``servers``). A request goes out again by itself only if it
certainly had no effect, which makes that harmless: no connection could be had, or the server
said that it did nothing, because it had forgotten the script (NOSCRIPT), does not serve the key
(MOVED, ASK), or lost its role (READONLY, CLUSTERDOWN, UNBLOCKED) and another one is known by now.
A lost reply is never resent here: that is for the caller, with a request that a token makes
idempotent. A server in trouble fails its own requests only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from redis.exceptions import (
    AskError,
    AuthenticationError,
    MovedError,
    NoScriptError,
    RedisError,
    ResponseError,
)

from tidework.broker.connection.cluster import ClusterRoute
from tidework.broker.connection.durable import check_server
from tidework.broker.connection.packing import Command, Words
from tidework.broker.connection.refusals import Refusals, is_role_lost
from tidework.broker.connection.routes import Route, SingleRoute
from tidework.broker.connection.sentinel import SentinelRoute
from tidework.broker.connection.servers import (
    MOST_BLOCKED,
    REPLY_TIMEOUT_S,
    NotSentError,
    Server,
    Servers,
    Side,
)
from tidework.broker.scripts import Call
from tidework.errors import BrokerError
from tidework.model.durability import Durability
from tidework.model.redis_url import Kind, Place, RedisUrl

MOST_SENDS = 5
"""A request that is still sent elsewhere after so many is given up."""

SECTIONS = ("server", "replication", "persistence")
NOWHERE = Place()
ASKING: Words = ("ASKING",)


@dataclass(slots=True, eq=False)
class Request:
    """What goes over one connection in one go, and what became of it.

    key:     of ours, says which server it is for; None = any
    command: a script or a plain command
    after: commands that follow it: those which say whether it is as durable as ``durability``
             asks, or a script that is to be run at once after it
    place:   where it was sent last; not_at: where it need not be sent again
    replies: raw, to the command and those that follow, or else ``error``
    """

    key: str | None
    command: Command
    durability: Durability = Durability.ASYNC
    after: tuple[Command, ...] = ()
    place: Place = NOWHERE
    not_at: Place = NOWHERE
    replies: Sequence[Any] = ()
    error: Exception | None = None
    by_text: bool = field(default=False)
    asking: bool = field(default=False)
    password_was_read_again: bool = field(default=False)

    def commands(self) -> list[Command]:
        """What goes out."""
        command = self.command
        if self.by_text and isinstance(command, Call):
            script, keys, argv = command
            command = ("EVAL", script.text, len(keys), *keys, *argv)
        if self.asking:
            return [ASKING, command, *self.after]
        return [command, *self.after]

    @property
    def fault(self) -> Exception | None:
        """What kept the command itself from being done."""
        if self.error is not None:
            return self.error
        first = self.replies[0]
        return first if isinstance(first, Exception) else None


class Delivery:
    """The servers of one URL, and the way to them."""

    def __init__(self, side: Side, url: RedisUrl, named_by: str) -> None:
        self.refusals = Refusals(url, named_by)
        self._side = side
        self._url = url
        self._servers = Servers(side, url, url.login, REPLY_TIMEOUT_S)
        self._patient: dict[float, Servers] = {}
        self._route = self._choose_route(named_by)

    def _choose_route(self, named_by: str) -> Route:
        match self._url.kind:
            case Kind.SINGLE:
                return SingleRoute(self._url.places[0])
            case Kind.SENTINEL:
                return SentinelRoute(self._side, self._url, self._keep, named_by)
            case Kind.CLUSTER:
                return ClusterRoute(self._side, self._url, self._servers, self._keep, named_by)

    async def deliver(self, requests: Sequence[Request]) -> None:
        """Have ``replies`` or ``error`` set in each of them; ``error`` is a BrokerError then."""
        await self._deliver(requests, self._servers, MOST_SENDS)

    async def ask(self, key: str | None, command: Command) -> Any:
        """The raw reply to one request. Raises BrokerError.

        Nearly all find everything as it was left, and end here; the others go the way of all.
        """
        place = self._route.place_at_once(key)
        server = None if place is None else self._servers.opened.get(place)
        if place is None or server is None or server.facts is None:
            request = Request(key, command)
            await self._deliver([request], self._servers, MOST_SENDS)
            return reply_of(request)
        try:
            (reply,) = await server.send((command,))
        except (NotSentError, RedisError, OSError) as error:
            reply = error
        if not isinstance(reply, Exception):
            return reply
        request = Request(key, command, place=place, replies=(reply,))
        if is_role_lost(reply) or not isinstance(reply, ResponseError):
            await self._distrust(server, place)
        if self._may_go_again(request, reply):
            await self._deliver([request], self._servers, MOST_SENDS - 1)
        else:
            self._translate(request, reply)
        return reply_of(request)

    async def deliver_blocked(self, request: Request, seconds: float) -> None:
        """The same for a command that may block so long, over a connection of its own kind."""
        # The socket outlasts the block: Redis answers late rather than never. Connections of one
        # time serve all who have it: whole seconds, so that there are few.
        timeout_s = math.ceil(seconds) + REPLY_TIMEOUT_S
        servers = self._patient.get(timeout_s)
        if servers is None:
            login = self._url.login
            servers = Servers(self._side, self._url, login, timeout_s, MOST_BLOCKED)
            servers = self._patient.setdefault(timeout_s, servers)
        await self._deliver([request], servers, MOST_SENDS)

    def read(self, request: Request) -> Any:
        """The reply to a plain command in redis-py's form."""
        server = self._servers.at(request.place)
        return server.read(cast("Words", request.command), request.replies[0])

    async def close(self) -> None:
        """End all connections; what is asked for later connects anew."""
        await self._keep(())
        await self._route.close()

    def abandon(self) -> None:
        """As ``close``, without the event loop or the process that they belong to."""
        for servers in (self._servers, *self._patient.values()):
            servers.abandon()
        self._route.abandon()

    async def _keep(self, places: Sequence[Place]) -> None:
        for servers in (self._servers, *self._patient.values()):
            await servers.keep(places)

    async def _deliver(self, requests: Sequence[Request], servers: Servers, most: int) -> None:
        pending = requests
        for _ in range(most):
            groups = await self._by_place(pending)
            if len(groups) == 1:
                ((place, group),) = groups.items()
                await self._send(servers, place, group)
            else:
                await self._side.together(
                    [partial(self._send, servers, place, group) for place, group in groups.items()]
                )
            pending = [
                request
                for group in groups.values()
                for request in group
                if (fault := request.fault) is not None and self._may_go_again(request, fault)
            ]
            if not pending:
                break
        for request in requests:
            fault = request.fault
            if fault is not None:
                self._translate(request, fault)

    def _translate(self, request: Request, fault: Exception) -> None:
        reason = fault.reason if isinstance(fault, NotSentError) else fault
        request.error = self.refusals.translate(reason, request.place)
        if request.error is not reason:
            request.error.__cause__ = reason

    async def _by_place(self, requests: Sequence[Request]) -> dict[Place, list[Request]]:
        """Those that can be sent, by place; the others have (or keep) their error."""
        trouble: BrokerError | None = None
        try:
            if requests:
                await self._route.prepare()
        except BrokerError as error:
            trouble = error
        groups: dict[Place, list[Request]] = {}
        for request in requests:
            try:
                if trouble is not None:
                    raise trouble
                place = request.place if request.asking else self._route.place_of(request.key)
            except BrokerError as error:
                request.error = error
                continue
            if place != request.not_at:
                request.place, request.not_at, request.error = place, NOWHERE, None
                groups.setdefault(place, []).append(request)
        return groups

    async def _send(self, servers: Servers, place: Place, requests: Sequence[Request]) -> None:
        server = servers.at(place)
        try:
            if server.facts is None and servers is self._servers:
                await self._check(server, place)
            commands: list[Command] = []
            for request in requests:
                if request.durability is not Durability.ASYNC:
                    check_server(request.durability, server.facts or {}, place)
                commands += request.commands()
            replies = await server.send(commands)
        except (NotSentError, RedisError, OSError, BrokerError) as error:
            for request in requests:
                request.error = error
            await self._distrust(server, place)
            return
        at = 0
        for request in requests:
            # ASKING's own reply says nothing.
            end = at + request.asking + 1 + len(request.after)
            request.replies = replies[at + request.asking : end]
            at = end
        if any(map(is_role_lost, replies)):
            await self._distrust(server, place)

    async def _check(self, server: Server, place: Place) -> None:
        commands: list[Words] = [("INFO", section) for section in SECTIONS]
        try:
            replies = await server.send(commands)
        except (RedisError, OSError) as error:
            raise NotSentError(error) from error
        facts: dict[str, Any] = {}
        for words, reply in zip(commands, replies, strict=True):
            if isinstance(reply, RedisError):
                raise NotSentError(reply)
            facts |= server.read(words, reply)
        self.refusals.check_info(facts, place)
        server.facts = facts

    async def _distrust(self, server: Server, place: Place) -> None:
        """Its place may lead to another server by now, or its keys be elsewhere."""
        await server.leave()
        self._route.doubt(place)

    def _may_go_again(self, request: Request, fault: Exception) -> bool:
        """Is another try harmless, and worth it? The module's docstring says when."""
        match fault:
            case BrokerError():
                return False
            case NoScriptError():
                was, request.by_text = request.by_text, True
                return not was
            case NotSentError(reason=AuthenticationError()):
                was, request.password_was_read_again = request.password_was_read_again, True
                return self._url.login.file is not None and not was
            case AskError():
                return self._follow(request, fault)
        if isinstance(fault, NotSentError) or is_role_lost(fault):
            request.asking, request.not_at = False, request.place
            return True
        return False

    def _follow(self, request: Request, fault: AskError) -> bool:
        if request.key is None:
            return False
        place = Place(fault.host or request.place.host, fault.port)
        request.asking = not isinstance(fault, MovedError)
        if not request.asking:
            return self._route.follow(request.key, place)
        request.place = place
        return self._url.kind is Kind.CLUSTER


def reply_of(request: Request) -> Any:
    """To its command. Raises its error."""
    if request.error is not None:
        raise request.error
    return request.replies[0]
