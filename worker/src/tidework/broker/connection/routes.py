"""Which server has a key: the contract, the simplest answer, and how servers are asked for it.

A route knows places; it may ask servers for them, and it is told when what it said turned out
wrong. It never sends a request of ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from tidework.broker.connection.servers import Side
from tidework.errors import BrokerError
from tidework.model.redis_url import Place

Keep = Callable[[Sequence[Place]], Awaitable[None]]
"""Closes the connections to all places but these."""


class Route(Protocol):
    """Knows the places of keys' servers."""

    async def prepare(self) -> None:
        """Find out what is not known (any more); no I/O otherwise.

        Raises BrokerUnavailableError or BrokerRefusedError if nobody can say.
        """

    def place_at_once(self, key: str | None, /) -> Place | None:
        """As ``place_of``, if nothing is to be found out first. Never raises."""

    def place_of(self, key: str | None, /) -> Place:
        """Where requests about ``key`` go; None = any server will do. ``prepare`` comes first.

        Raises BrokerUnavailableError if nobody serves this key.
        """

    def doubt(self, place: Place) -> None:
        """The server at this place is not (or not any more) the one that was meant."""

    def follow(self, key: str, place: Place, /) -> bool:
        """A server says that ``key`` is at this place. False = no such answer was expected."""

    async def close(self) -> None:
        """Forget what was found out."""

    def abandon(self) -> None:
        """As ``close``, without the event loop or the process that connections belong to."""


class SingleRoute:
    """One server has every key."""

    def __init__(self, place: Place) -> None:
        self._place = place

    async def prepare(self) -> None:
        """Nothing is to be found out."""

    def place_at_once(self, _key: str | None, /) -> Place | None:
        return self._place

    def place_of(self, _key: str | None, /) -> Place:
        return self._place

    def doubt(self, place: Place) -> None:
        """There is no other."""

    def follow(self, _key: str, _place: Place, /) -> bool:
        return False

    async def close(self) -> None:
        """Nothing was found out."""

    def abandon(self) -> None:
        """Nor is there any connection."""


class Inquiry:
    """Asks once for all who need the answer at the same time; they share a failure too.

    act: finds out and keeps the answer; raises BrokerError
    """

    def __init__(self, side: Side, act: Callable[[], Awaitable[None]]) -> None:
        self._act = act
        self._turns = side.turns()
        self._ended = 0
        self._failure: BrokerError | None = None

    async def ask(self, is_answered: Callable[[], bool]) -> None:
        """Return when it is answered. Raises what ``act`` raises."""
        await self._turns.take(partial(self._ask, self._ended, is_answered))

    async def _ask(self, ended: int, is_answered: Callable[[], bool]) -> None:
        if is_answered():
            return
        if self._ended != ended and self._failure is not None:
            # Were each of many to ask servers that stand still, the last would wait for long.
            raise self._failure
        self._failure = None
        try:
            await self._act()
        except BrokerError as error:
            self._failure = error
            raise
        finally:
            self._ended += 1


def rotated(places: Sequence[Place]) -> list[Place]:
    """The first comes last."""
    return [*places[1:], *places[:1]]
