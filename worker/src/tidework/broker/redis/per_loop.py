"""A broker for each event loop of this process, and one for programs without.

Connections live as long as what they belong to. A loop that is shut down in order, as by
`asyncio.run`, closes them by the way of async generators. Those of a loop that ended without it, or
whose thread did, are closed when the next loop asks; a fork's child closes its copies at once.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

from tidework.broker.connection.transport import AsyncTransport, BlockingTransport, drive
from tidework.broker.redis.redis_broker import RedisBroker


class _OfLoop:
    """What one event loop has. ``until``: the generator that the loop ends with itself."""

    def __init__(self, loop: asyncio.AbstractEventLoop, url: str) -> None:
        self.loop = loop
        self.pid = os.getpid()
        self._transport = AsyncTransport(url)
        self.broker = RedisBroker(self._transport)
        self.until = self._until_its_end()
        self._thread = threading.current_thread()
        with suppress(StopIteration):
            self.until.__anext__().send(None)  # from here on the loop knows it

    async def _until_its_end(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self.broker.close()

    def abandon(self) -> None:
        """Its loop turns no more, or is a parent's."""
        self._transport.abandon()

    def has_ended(self) -> bool:
        """Nobody will turn the loop any more."""
        if self.loop.is_closed():
            return True
        return not self.loop.is_running() and not self._thread.is_alive()


class _Blocking:
    def __init__(self, url: str) -> None:
        self.pid = os.getpid()
        self.transport = BlockingTransport(url)
        self.broker = RedisBroker(self.transport)


class Brokers:
    """url: where; asked for at the first call"""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._begin()
        _of_this_process.add(self)

    def _begin(self) -> None:
        # A signal handler may come in the midst of it, and ask itself.
        self._lock = threading.RLock()
        self._by_loop: dict[int, _OfLoop] = {}
        self._blocking: _Blocking | None = None

    def of_loop(self) -> RedisBroker:
        """For the event loop that runs."""
        loop = asyncio.get_running_loop()
        found = self._by_loop.get(id(loop))
        if found is not None and found.loop is loop and found.pid == os.getpid():
            return found.broker
        with self._lock:
            self._drop_ended()
            self._by_loop[id(loop)] = made = _OfLoop(loop, self._url())
            return made.broker

    def blocking(self) -> RedisBroker:
        """For programs without one."""
        found = self._blocking
        if found is not None and found.pid == os.getpid():
            return found.broker
        with self._lock:
            found = self._blocking
            if found is None or found.pid != os.getpid():
                self._drop_ended()
                found = self._blocking = _Blocking(self._url())
            return found.broker

    async def close_of_loop(self) -> None:
        """Give back what the running loop has, and what ended ones have left."""
        self._drop_ended()
        found = self._by_loop.pop(id(asyncio.get_running_loop()), None)
        if found is not None:
            await found.until.aclose()

    def close_blocking(self) -> None:
        """Give back what programs without a loop have, and what ended loops have left."""
        with self._lock:
            self._drop_ended()
            found, self._blocking = self._blocking, None
        if found is not None and found.pid == os.getpid():
            drive(found.broker.close())

    def _drop_ended(self) -> None:
        self._drop_parents()
        for key, found in list(self._by_loop.items()):
            if found.has_ended() and self._by_loop.pop(key, None) is not None:
                found.abandon()

    def _drop_parents(self) -> None:
        """What a fork's child has of its parent, if nobody said that it forked."""
        pid = os.getpid()
        if any(found.pid != pid for found in self._by_loop.values()) or (
            self._blocking is not None and self._blocking.pid != pid
        ):
            self.after_fork()

    def after_fork(self) -> None:
        """In the child: nothing of its parent's is used, nor told that it ends."""
        by_loop, blocking = self._by_loop, self._blocking
        self._begin()
        for found in by_loop.values():
            found.abandon()
        if blocking is not None:
            blocking.transport.abandon()


_of_this_process: weakref.WeakSet[Brokers] = weakref.WeakSet()


def _after_fork() -> None:
    for found in list(_of_this_process):
        found.after_fork()


os.register_at_fork(after_in_child=_after_fork)
