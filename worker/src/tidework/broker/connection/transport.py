"""The way from the broker to Redis: scripts and the few plain commands that are none.

Two transports have the same methods. The blocking one never suspends, so that the same
coroutines serve programs without an event loop (see ``drive``). Which server is asked is in the
URL (``url``) and found by ``delivery``, which says what goes out twice and what does not. A
server that forgot a script gets its text by EVAL, which runs it and keeps it: one step, one right.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from tidework.broker.connection.delivery import Delivery, Request, reply_of
from tidework.broker.connection.durable import DURABLE_WITHIN, check_reply, confirming
from tidework.broker.connection.refusals import is_role_lost
from tidework.broker.connection.servers import AsyncSide, BlockingSide, Side
from tidework.broker.documents import hand_out
from tidework.broker.scripts import Call, Value
from tidework.errors import ConfigurationError
from tidework.model.durability import Durability
from tidework.model.redis_url import read_redis_url

__all__ = ["AsyncTransport", "BlockingTransport", "Call", "Transport", "drive"]

NAMED_BY = "TIDEWORK_REDIS_URL or --redis-url"
OF_OURS = "tw1:"
T = TypeVar("T")


class Transport(Protocol):
    """Runs scripts and plain commands. Raises BrokerError."""

    async def run(self, call: Call, durability: Durability = Durability.ASYNC) -> Any:
        """One script. Raises NotDurableError if it is stored, but not as durably as asked."""

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        """Several scripts in one round trip per server, each atomic for itself.

        Those of one server run in order, but one that it had forgotten runs after the others.
        """

    async def run_each(self, calls: Sequence[Call]) -> list[Any]:
        """As ``run_all``; in place of a reply that is missing stands its BrokerError."""

    async def command(self, *words: Value) -> Any:
        """One plain command. The first of its words that is a key of ours says where it goes."""

    async def take(
        self, source: str, target: str, timeout: timedelta, then: Call | None = None
    ) -> tuple[bytes | None, Any]:
        """BLMOVE from the right of ``source`` to the right of ``target``.

        What is longer than MAX_DOCUMENT_BYTES comes as its Beginning.

        then: a script that the server runs as soon as the wait is over, without a round trip
        between; its reply comes second. None in its place if it has no reply: it is to be sent by
        itself then, and has to bear that it was run.
        """

    async def close(self) -> None:
        """Give back all connections."""


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine over a blocking transport to its end, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine over a blocking transport has suspended")


class _Transport:
    def __init__(self, side: Side, url: str, named_by: str, durable_within: timedelta) -> None:
        try:
            parsed = read_redis_url(url)
            self._delivery = Delivery(side, parsed, named_by)
        except ValueError as error:
            raise ConfigurationError(f"{named_by}: the Redis URL is wrong: {error}") from error
        self._named_by = named_by
        self._durable_within = durable_within

    async def run(self, call: Call, durability: Durability = Durability.ASYNC) -> Any:
        if durability is Durability.ASYNC:
            return await self._delivery.ask(call.keys[0] if call.keys else None, call)
        request = _request(call)
        request.durability = durability
        request.after = confirming(durability, self._durable_within)
        await self._delivery.deliver([request])
        reply = reply_of(request)
        self._check_durable(request)
        return reply

    def _check_durable(self, request: Request) -> None:
        found = request.replies[1]
        if isinstance(found, Exception) and is_role_lost(found):
            raise self._delivery.refusals.translate(found, request.place) from found
        check_reply(
            request.durability,
            found,
            request.place,
            self._durable_within,
            named_by=self._named_by,
        )

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        requests = [_request(call) for call in calls]
        await self._delivery.deliver(requests)
        return [reply_of(request) for request in requests]

    async def run_each(self, calls: Sequence[Call]) -> list[Any]:
        requests = [_request(call) for call in calls]
        await self._delivery.deliver(requests)
        return [request.error or request.replies[0] for request in requests]

    async def command(self, *words: Value) -> Any:
        key = next(
            (word for word in words[1:] if isinstance(word, str) and word.startswith(OF_OURS)), None
        )
        request = Request(key, words)
        await self._delivery.deliver([request])
        reply_of(request)
        return self._delivery.read(request)

    async def take(
        self, source: str, target: str, timeout: timedelta, then: Call | None = None
    ) -> tuple[bytes | None, Any]:
        seconds = timeout.total_seconds()
        request = Request(source, ("BLMOVE", source, target, "RIGHT", "RIGHT", seconds))
        if then is not None:
            request.after = (then,)
        await self._delivery.deliver_blocked(request, seconds)
        found: bytes | None = reply_of(request)
        if found is not None:
            found = hand_out(found)  # mostly it is cut where it is read: see sieve.py
        reply = None if then is None else request.replies[1]
        return found, None if isinstance(reply, Exception) else reply

    async def close(self) -> None:
        await self._delivery.close()

    def abandon(self) -> None:
        """As ``close``, when their event loop has ended, or after a fork in the child."""
        self._delivery.abandon()


class AsyncTransport(_Transport):
    """For programs with an event loop.

    named_by:       where a person sets the URL, for the remedy in an error
    durable_within: how long a write may take to become as durable as asked, below 5 s

    Raises ConfigurationError for a wrong URL. No I/O before the first call.
    """

    def __init__(
        self, url: str, *, named_by: str = NAMED_BY, durable_within: timedelta = DURABLE_WITHIN
    ) -> None:
        super().__init__(AsyncSide(), url, named_by, durable_within)


class BlockingTransport(_Transport):
    """As AsyncTransport, for programs without an event loop. Its coroutines never suspend.

    Thread-safe; threads share its connections.
    """

    def __init__(
        self, url: str, *, named_by: str = NAMED_BY, durable_within: timedelta = DURABLE_WITHIN
    ) -> None:
        super().__init__(BlockingSide(), url, named_by, durable_within)


def _request(call: Call) -> Request:
    return Request(call.keys[0] if call.keys else None, call)
