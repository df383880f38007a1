"""A proxy between clients and their Redis that loses, holds and repeats what a test chooses.

It reads RESP (version 2) just far enough to see where a request or a reply ends, so that "the
reply of the second exchange" is a thing that can be lost. A request is known by the name of its
script, whether sent by its SHA or as text, or else by its command in lower case.
What is caught keeps its bytes: ``send`` lets them arrive again, or late, on another connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from importlib.resources import files
from types import TracebackType
from typing import Self

from tidework.broker.scripts import load_script


class Fate(Enum):
    """What becomes of a request that is caught."""

    PASS = auto()
    """Nothing."""
    LOSE_REQUEST = auto()
    """The connection ends before the server gets it."""
    LOSE_REPLY = auto()
    """The server does it, and the connection ends before the client hears of it."""
    SWALLOW_REPLY = auto()
    """The server does it, the reply does not come, the connection stays."""
    HOLD_REPLY = auto()
    """The client gets the reply when it is released."""


@dataclass(eq=False, slots=True)
class Catch:
    """The ``countdown``-th request of a name from now on; its bytes, and those of its reply."""

    name: str
    fate: Fate
    countdown: int
    request: bytes = b""
    reply: bytes = b""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let the reply go that is held."""
        self.released.set()


@cache
def script_names() -> dict[str, str]:
    """SHA of a composed script -> its name, of every script that there is."""
    folder = files("tidework.broker").joinpath("scripts")
    found = [entry.name for entry in folder.iterdir() if entry.name.endswith(".lua")]
    names = [name.removesuffix(".lua") for name in found]
    return {load_script(name).sha: name for name in names}


def name_of(words: list[bytes]) -> str:
    """What a request is known by."""
    command = words[0].lower().decode()
    if command == "evalsha":
        return script_names().get(words[1].lower().decode(), command)
    if command == "eval":
        sha = hashlib.sha1(words[1], usedforsecurity=False).hexdigest()
        return script_names().get(sha, command)
    return command


async def read_value(reader: asyncio.StreamReader, words: list[bytes]) -> bytes:
    """One request or reply as it came; its strings are added to ``words``."""
    line = await reader.readuntil(b"\r\n")
    if line[:1] == b"*":
        parts = [await read_value(reader, words) for _ in range(int(line[1:]))]
        return line + b"".join(parts)
    if line[:1] == b"$" and int(line[1:]) >= 0:
        body = await reader.readexactly(int(line[1:]) + 2)
        words.append(body[:-2])
        return line + body
    return line


class Proxy:
    """Listens on the loopback and leads to ``port``; an asynchronous context manager.

    port:        of the server; new connections lead to whatever it is then
    before_each: called with the name of a request before the server gets it
    seen:        how many requests of each name came
    accepted:    how many connections
    drops:       requests and replies are lost, and no connection ends for it: a network that
                 swallows packets
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.before_each: Callable[[str], Awaitable[None]] | None = None
        self.seen: Counter[str] = Counter()
        self.accepted = 0
        self.drops = False
        self._catches: list[Catch] = []
        self._sessions: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._faults: list[BaseException] = []
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """What a client connects to."""
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"

    def catch(self, name: str, fate: Fate = Fate.PASS, *, nth: int = 1) -> Catch:
        """Have the nth request of this name from now on meet its fate."""
        found = Catch(name, fate, nth)
        self._catches.append(found)
        return found

    async def send(self, request: bytes) -> bytes:
        """Let the server get these bytes by another way; its reply."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            return await read_value(reader, [])
        finally:
            await _close(writer)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        # A session ends with its client; cancelled it would leave a connection behind.
        for writer in self._sessions.values():
            writer.close()
        await asyncio.gather(*self._sessions)
        if error is None and self._faults:
            raise self._faults[0]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._sessions[task] = writer
        task.add_done_callback(self._sessions.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _Session(self, reader, writer).run()
        except Exception as error:
            self._faults.append(error)
        finally:
            await _close(writer)

    def meet(self, words: list[bytes], request: bytes) -> Catch | None:
        """Of sessions: whether this request is one that was asked for."""
        name = name_of(words)
        self.seen[name] += 1
        for found in self._catches:
            if found.name == name:
                found.countdown -= 1
                if found.countdown == 0:
                    self._catches.remove(found)
                    found.request = request
                    found.asked.set()
                    return found
        return None

    def miss(self, found: Catch) -> None:
        """Of sessions: the server did not do it, since it does not know the script. Next time."""
        found.countdown = 1
        self._catches.append(found)


class _CutError(Exception):
    """The connection is to end."""


class _Session:
    """One client's connection. ``_pending``: what waits for a reply, in order."""

    def __init__(
        self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._pending: asyncio.Queue[Catch | None] = asyncio.Queue()

    async def run(self) -> None:
        """Until one side ends it, or a fate does."""
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._proxy.port)
        except OSError:
            return
        pumps = [
            asyncio.ensure_future(self._pass_requests(to_server)),
            asyncio.ensure_future(self._pass_replies(from_server)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            ended = await asyncio.gather(*pumps, return_exceptions=True)
            await _close(to_server)
        expected = (_CutError, asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)
        for error in ended:
            if isinstance(error, BaseException) and not isinstance(error, expected):
                raise error

    async def _pass_requests(self, to_server: asyncio.StreamWriter) -> None:
        while True:
            words: list[bytes] = []
            request = await read_value(self._reader, words)
            if self._proxy.drops:
                continue
            if self._proxy.before_each is not None:
                await self._proxy.before_each(name_of(words))
            found = self._proxy.meet(words, request)
            if found is not None and found.fate is Fate.LOSE_REQUEST:
                raise _CutError
            self._pending.put_nowait(found)
            to_server.write(request)
            await to_server.drain()

    async def _pass_replies(self, from_server: asyncio.StreamReader) -> None:
        while True:
            reply = await read_value(from_server, [])
            found = await self._pending.get()
            if self._proxy.drops:
                continue
            if found is not None:
                if reply.startswith(b"-NOSCRIPT"):
                    self._proxy.miss(found)
                elif not await self._may_pass(found, reply):
                    continue
            self._writer.write(reply)
            await self._writer.drain()

    async def _may_pass(self, found: Catch, reply: bytes) -> bool:
        found.reply = reply
        found.answered.set()
        if found.fate is Fate.LOSE_REPLY:
            raise _CutError
        if found.fate is Fate.HOLD_REPLY:
            await found.released.wait()
        return found.fate is not Fate.SWALLOW_REPLY


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
