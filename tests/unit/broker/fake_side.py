"""Servers that answer as a test says, and note what was sent to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from redis.exceptions import RedisError

from tidework.broker.connection.packing import Command, Words, words_of
from tidework.broker.connection.servers import AsyncSide, NotSentError, Server

T = TypeVar("T")
Answer = Callable[[Words], Any]
INFO = {"redis_version": "7.2.4", "role": "master", "aof_enabled": 1}


class FakeServer:
    """One place. ``sent``: every command but INFO, in order; ``tried``: how often."""

    def __init__(self, place: str, side: FakeSide) -> None:
        self.facts: dict[str, Any] | None = None
        self.place = place
        self.sent: list[Words] = []
        self.tried = 0
        self.left = 0
        self.is_closed = False
        self._side = side

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        self.tried += 1
        await asyncio.sleep(0)
        if self.place in self._side.away:
            raise NotSentError(self._side.away[self.place])
        return [self._answer(words_of(command)) for command in commands]

    def _answer(self, words: Words) -> Any:
        if words[0] == "INFO":
            return self._side.info.get(self.place, INFO)
        self.sent.append(words)
        reply = self._side.answers[self.place](words)
        if isinstance(reply, (OSError, _Raised)):
            raise reply.error if isinstance(reply, _Raised) else reply
        return reply

    def read(self, words: Words, reply: Any) -> Any:
        return reply

    async def leave(self) -> None:
        self.facts = None
        self.left += 1

    async def close(self) -> None:
        self.is_closed = True

    def abandon(self) -> None:
        self.is_closed = True


class _Raised:
    """The reply does not come; the error is raised instead."""

    def __init__(self, error: RedisError) -> None:
        self.error = error

    def __repr__(self) -> str:
        return f"lost({self.error!r})"  # names the cases of a test: the same in every process


def lost(error: RedisError) -> _Raised:
    """An answer: what was sent may have been done, and no reply comes."""
    return _Raised(error)


class FakeSide(AsyncSide):
    """All servers, by their place as text.

    answers: what each says to a command; errors of redis-py stand for error replies
    away:    places where nobody takes connections, and the error of trying
    info:    what INFO says where it is not the usual
    """

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.away: dict[str, RedisError] = {}
        self.info: dict[str, dict[str, Any]] = {}
        self.opened: list[FakeServer] = []

    def open(self, options: dict[str, Any]) -> Server:
        self.opened.append(FakeServer(f"{options['host']}:{options['port']}", self))
        return self.opened[-1]

    def sent(self, place: str) -> list[Words]:
        """To this place, over all its connections."""
        return [words for each in self.opened if each.place == place for words in each.sent]
