"""Connections: the Redis servers that this operator may use, by name.

A connection is a folder of mounted files: ``url``, or ``host`` with ``port``, ``username``,
``password``, ``database``, ``tls``. Whenever Redis refuses the credentials or is not there, the
files are read again: a rotated password needs no restart. A queue's TaskQueue names its connection.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tidework.broker.broker import Broker
from tidework.broker.connection.transport import AsyncTransport, Call, Transport
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.broker.scripts import Value
from tidework.errors import BrokerRefusedError, BrokerUnavailableError, ConfigurationError
from tidework.model.durability import Durability
from tidework.model.identity import is_dns_label
from tidework.model.lease import LimitsOf
from tidework.model.redis_url import add_login

logger = logging.getLogger(__name__)

DEFAULT = "default"


class Connections:
    """Brokers by name of connection; opened when asked for, no I/O to Redis before the first call.

    folder:      one sub-folder per connection
    default_url: of the connection ``default`` where the folder has none; '' without
    limits:      the bounds of each queue
    """

    def __init__(self, folder: Path, default_url: str, limits: LimitsOf) -> None:
        self._folder = folder
        self._default_url = default_url
        self._limits = limits
        self._brokers: dict[str, RedisBroker] = {}

    def names(self) -> tuple[str, ...]:
        """Every connection that is configured now, sorted."""
        found = {DEFAULT} if self._default_url else set()
        if self._folder.is_dir():
            found |= {
                each.name
                for each in self._folder.iterdir()
                if is_dns_label(each.name) and each.is_dir()
            }
        return tuple(sorted(found))

    def broker(self, name: str) -> Broker:
        """The broker of a connection. Raises ConfigurationError for one that is not configured."""
        broker = self._brokers.get(name)
        if broker is None:
            named_by = f"the operator's connection {name!r} (chart value `connections`)"
            transport = RereadTransport(
                lambda: self._url(name), partial(AsyncTransport, named_by=named_by)
            )
            broker = self._brokers[name] = RedisBroker(transport, self._limits)
        return broker

    async def close(self) -> None:
        """Close all connections."""
        for broker in self._brokers.values():
            await broker.close()
        self._brokers.clear()

    def _url(self, name: str) -> str:
        folder = self._folder / name
        if is_dns_label(name) and folder.is_dir():
            return read_url(folder)
        if name == DEFAULT and self._default_url:
            return self._default_url
        known = ", ".join(self.names()) or "none"
        raise ConfigurationError(
            f"the operator has no Redis connection {name!r} (it has: {known}); add it to the "
            "operator's configuration (chart value `connections`), or name another in spec.redis"
        )


def read_url(folder: Path) -> str:
    """The Redis URL that the files of a folder say.

    Raises ConfigurationError that names the file at fault; never with a secret in it.
    """
    user = _read(folder / "username")
    # Not read here: whoever connects reads it, so that a rotated password needs nobody.
    password_file = folder / "password" if (folder / "password").is_file() else None
    if url := _read(folder / "url"):
        try:
            return add_login(url, username=user, password_file=password_file)
        except ValueError as error:
            raise ConfigurationError(f"{folder / 'url'}: {error}") from error
    host = _read(folder / "host")
    if not host:
        raise ConfigurationError(f"{folder}: a connection needs a file `url`, or a file `host`")
    port = _read(folder / "port") or "6379"
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ConfigurationError(f"{folder / 'port'}: use a number from 1 to 65535")
    database = _read(folder / "database") or "0"
    if not database.isdecimal():
        raise ConfigurationError(f"{folder / 'database'}: use a number, 0 or greater")
    scheme = "rediss" if _read(folder / "tls").lower() in ("true", "1", "yes") else "redis"
    place = f"[{host}]" if ":" in host else host
    plain = f"{scheme}://{place}:{port}/{database}"
    return add_login(plain, username=user, password_file=password_file)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: cannot be read: {error}") from error


class RereadTransport:
    """A Transport that asks for its URL again when Redis refuses it or is not there.

    A refused call had no effect, so it is made once more under the new URL.
    """

    def __init__(
        self, url: Callable[[], str], open_url: Callable[[str], Transport] = AsyncTransport
    ) -> None:
        self._ask = url
        self._open_url = open_url
        self._url = url()
        self._transport = open_url(self._url)

    async def run(self, call: Call, durability: Durability = Durability.ASYNC) -> Any:
        return await self._twice(lambda transport: transport.run(call, durability))

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        found: list[Any] = await self._twice(lambda transport: transport.run_all(calls))
        return found

    async def run_each(self, calls: Sequence[Call]) -> list[Any]:
        transport = self._transport
        found = await transport.run_each(calls)
        if any(isinstance(each, (BrokerRefusedError, BrokerUnavailableError)) for each in found):
            # Some may have had an effect: whoever asked makes the others once more.
            await self._reopen(transport)
        return found

    async def command(self, *words: Value) -> Any:
        return await self._twice(lambda transport: transport.command(*words))

    async def take(
        self, source: str, target: str, timeout: timedelta, then: Call | None = None
    ) -> tuple[bytes | None, Any]:
        raise NotImplementedError("the operator takes no work")

    async def close(self) -> None:
        await self._transport.close()

    async def _twice(self, act: Callable[[Transport], Awaitable[Any]]) -> Any:
        transport = self._transport
        try:
            return await act(transport)
        except BrokerUnavailableError:
            # It may have moved. Whether the call had an effect nobody knows: the caller decides.
            await self._reopen(transport)
            raise
        except BrokerRefusedError:
            if not await self._reopen(transport):
                raise
        return await act(self._transport)

    async def _reopen(self, failed: Transport) -> bool:
        """Is there another transport by now than the one that failed?"""
        if failed is not self._transport:
            return True
        try:
            url = self._ask()
        except ConfigurationError as error:
            logger.warning("%s", error, extra={"event": "redis_files_unreadable"})
            return False
        if url == self._url:
            return False
        logger.info(
            "the files of a Redis connection have changed: reconnecting",
            extra={"event": "redis_files_changed"},
        )
        self._url, self._transport = url, self._open_url(url)
        await failed.close()
        return True
