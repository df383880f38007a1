"""The only place that talks to Redis: connections, timeouts, resends, error translation.

redis-py resends silently by default, and its timeouts are its own; both are set here, explicitly:
no silent resend, 5 s per reply, and a connection of its own for the blocking take. Whoever
resends does so knowingly, with a request that is idempotent by a token.

A server that forgot a script gets its text by EVAL, which keeps it: SCRIPT LOAD is refused by a
server that is out of memory, when settling has to go on.

Two transports have the same methods. The blocking one never suspends, so that the same
coroutines serve programs without an event loop (see ``drive``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.retry import Retry

from tidework.broker.scripts import Script, Value
from tidework.errors import (
    BrokerError,
    BrokerFullError,
    BrokerRefusedError,
    BrokerUnavailableError,
    ConfigurationError,
)

REPLY_TIMEOUT_S = 5.0
MOST_CONNECTIONS = 32
NAMED_BY = "TIDEWORK_REDIS_URL or --redis-url"
OLDEST_REDIS = (7, 0)
T = TypeVar("T")
Call = tuple[Script, tuple[str, ...], list[Value]]


class Transport(Protocol):
    """Runs scripts and the few plain commands that are none."""

    async def run(self, call: Call) -> Any:
        """One script."""

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        """Several scripts in one round trip, each atomic for itself, in order."""

    async def command(self, *words: Value) -> Any:
        """One plain command."""

    async def take(self, source: str, target: str, timeout: timedelta) -> bytes | None:
        """BLMOVE from the right of ``source`` to the right of ``target``."""

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


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path
    try:
        return f"{parts.hostname or 'localhost'}:{parts.port or 6379}"
    except ValueError as error:
        raise ConfigurationError(f"the Redis URL is wrong: {error}") from error


class _Door:
    """What both transports share: options, the server check, error translation.

    named_by: where a person sets the URL, for the remedy in an error
    """

    def __init__(self, url: str, *, named_by: str = NAMED_BY) -> None:
        self.address = _address(url)
        self._url = url
        self._named_by = named_by

    def _options(self, timeout_s: float) -> dict[str, Any]:
        options = {
            "socket_timeout": timeout_s,
            "socket_connect_timeout": REPLY_TIMEOUT_S,
            "health_check_interval": 0,
            "protocol": 2,
            "client_name": "tidework",
        }
        if not self._url.startswith("unix:"):
            options["socket_keepalive"] = True
        return options

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn redis-py's errors into ours."""
        try:
            yield
        except (RedisError, OSError) as error:
            raise self._translate(error) from error

    def _translate(self, error: Exception) -> BrokerError:
        at = f"Redis at {self.address}"
        text = str(error) or type(error).__name__
        if isinstance(error, OutOfMemoryError):
            return BrokerFullError(
                f"{at} is out of memory and refuses new work ({text}); "
                "raise its maxmemory or let the workers catch up"
            )
        if isinstance(error, ReadOnlyError):
            return BrokerRefusedError(f"{at} is a read-only replica; point the URL at the primary")
        denied = isinstance(error, (AuthenticationError, NoPermissionError))
        if denied or text.startswith(("NOAUTH", "WRONGPASS", "NOPERM")):
            return BrokerRefusedError(
                f"{at} refuses the credentials or the right ({text}); "
                "set user and password in the URL: redis://USER:PASSWORD@HOST:PORT/DB "
                f"({self._named_by})"
            )
        if isinstance(error, BusyLoadingError):
            return BrokerUnavailableError(f"{at} is still loading its data")
        if isinstance(error, ResponseError):
            return BrokerError(f"{at} answered: {text}")
        return BrokerUnavailableError(
            f"{at} cannot be reached ({text}); check that it runs and that "
            f"{self._named_by} names it"
        )

    def check_info(self, info: dict[str, Any]) -> None:
        """Refuse a server that cannot serve. Raises BrokerRefusedError."""
        version = str(info.get("redis_version", "0.0"))
        major, minor = (int(part) for part in version.split(".")[:2])
        if (major, minor) < OLDEST_REDIS:
            raise BrokerRefusedError(
                f"Redis at {self.address} is version {version}; "
                "Tidework needs Redis 7.0 or Valkey 7.2, or later"
            )
        if info.get("role") in ("slave", "replica"):
            raise BrokerRefusedError(
                f"Redis at {self.address} is a read-only replica; point the URL at the primary"
            )


class AsyncTransport(_Door):
    """Over redis.asyncio, for programs with an event loop."""

    def __init__(self, url: str, *, named_by: str = NAMED_BY) -> None:
        super().__init__(url, named_by=named_by)
        self._client = self._connect(REPLY_TIMEOUT_S)
        self._blocking: redis.asyncio.Redis | None = None
        self._checked = False
        self._checking = asyncio.Lock()

    def _connect(self, timeout_s: float) -> redis.asyncio.Redis:
        try:
            # One call more than there are connections waits for one, instead of failing.
            pool = redis.asyncio.BlockingConnectionPool.from_url(
                self._url,
                max_connections=MOST_CONNECTIONS,
                timeout=REPLY_TIMEOUT_S,
                retry=AsyncRetry(NoBackoff(), 0),
                **self._options(timeout_s),
            )
            return redis.asyncio.Redis.from_pool(pool)
        except ValueError as error:
            raise ConfigurationError(f"the Redis URL is wrong: {error}") from error

    async def _check(self) -> None:
        async with self._checking:
            if not self._checked:
                self.check_info(await self._client.info("server", "replication"))
                self._checked = True

    async def run(self, call: Call) -> Any:
        script, keys, argv = call
        with self.translated():
            if not self._checked:
                await self._check()
            try:
                return await self._execute("EVALSHA", script.sha, len(keys), *keys, *argv)
            except NoScriptError:
                return await self._execute("EVAL", script.text, len(keys), *keys, *argv)

    async def _execute(self, *words: Value, client: redis.asyncio.Redis | None = None) -> Any:
        client = client or self._client
        try:
            return await client.execute_command(*words)  # type: ignore[no-untyped-call]
        except ReadOnlyError:
            await _leave(client)
            raise

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        with self.translated():
            if not self._checked:
                await self._check()
            results = await self._pipeline(calls)
            for i, found in enumerate(results):
                if isinstance(found, NoScriptError):
                    script, keys, argv = calls[i]
                    results[i] = await self._execute("EVAL", script.text, len(keys), *keys, *argv)
            _raise_first(results)
            return results

    async def _pipeline(self, calls: Sequence[Call]) -> list[Any]:
        pipe = self._client.pipeline(transaction=False)
        for script, keys, argv in calls:
            pipe.execute_command("EVALSHA", script.sha, len(keys), *keys, *argv)
        results: list[Any] = await pipe.execute(raise_on_error=False)
        if any(isinstance(found, ReadOnlyError) for found in results):
            await _leave(self._client)
        return results

    async def command(self, *words: Value) -> Any:
        with self.translated():
            if not self._checked:
                await self._check()
            return await self._execute(*words)

    async def take(self, source: str, target: str, timeout: timedelta) -> bytes | None:
        seconds = timeout.total_seconds()
        with self.translated():
            if not self._checked:
                await self._check()
            if self._blocking is None:
                # The socket outlasts the block: Redis answers late rather than never.
                self._blocking = self._connect(seconds + REPLY_TIMEOUT_S)
            words: tuple[Value, ...] = ("BLMOVE", source, target, "RIGHT", "RIGHT", seconds)
            found: bytes | None = await self._execute(*words, client=self._blocking)
            return found

    async def close(self) -> None:
        clients = [self._client, self._blocking]
        self._blocking = None
        self._checked = False
        for client in clients:
            if client is not None:
                await client.aclose()


class BlockingTransport(_Door):
    """Over redis.Redis. Its coroutines never suspend; thread-safe as its client is."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._checked = False
        try:
            pool = redis.BlockingConnectionPool.from_url(
                url,
                max_connections=MOST_CONNECTIONS,
                timeout=REPLY_TIMEOUT_S,
                retry=Retry(NoBackoff(), 0),
                **self._options(REPLY_TIMEOUT_S),
            )
            self._client = redis.Redis.from_pool(pool)
        except ValueError as error:
            raise ConfigurationError(f"the Redis URL is wrong: {error}") from error

    def _check(self) -> None:
        self.check_info(self._client.info("server", "replication"))
        self._checked = True

    async def run(self, call: Call) -> Any:
        script, keys, argv = call
        with self.translated():
            if not self._checked:
                self._check()
            try:
                return self._execute("EVALSHA", script.sha, len(keys), *keys, *argv)
            except NoScriptError:
                return self._execute("EVAL", script.text, len(keys), *keys, *argv)

    def _execute(self, *words: Value) -> Any:
        try:
            return self._client.execute_command(*words)  # type: ignore[no-untyped-call]
        except ReadOnlyError:
            self._client.connection_pool.disconnect(inuse_connections=False)
            raise

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        return [await self.run(call) for call in calls]

    async def command(self, *words: Value) -> Any:
        with self.translated():
            if not self._checked:
                self._check()
            return self._execute(*words)

    async def take(self, source: str, target: str, timeout: timedelta) -> bytes | None:
        raise NotImplementedError("a blocking client takes no work")

    async def close(self) -> None:
        self._client.close()
        self._checked = False


async def _leave(client: redis.asyncio.Redis) -> None:
    """Give up connections to a demoted primary: the address may lead to the new one by now."""
    await client.connection_pool.disconnect(inuse_connections=False)


def _raise_first(results: Sequence[Any]) -> None:
    for found in results:
        if isinstance(found, Exception):
            raise found
