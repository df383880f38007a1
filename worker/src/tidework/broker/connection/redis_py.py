"""What we take from inside redis-py, which promises none of it: all of that is here.

redis-py connects and logs in, then ``wire`` and ``blocking_wire`` read and write over the socket
that it has opened. For that they need four things of a connection:

    _sock           blocking: its socket
    _writer         event loop: its StreamWriter, and so the transport and the socket
    _reader         event loop: its StreamReader, which knows whether the server has closed it
    _parser         both: ``parse_error`` makes an exception of an error reply

tests/unit/broker/test_redis_py.py fails if a release of redis-py has moved one of them. With such a
release the first connection of a program raises ConfigurationError.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import redis
from redis.asyncio.connection import AbstractConnection as AsyncConnection
from redis.connection import AbstractConnection as BlockingConnection

from tidework.errors import ConfigurationError


def _inner(connection: AsyncConnection | BlockingConnection, *names: str) -> Any:
    found: Any = connection
    for name in names:
        if not hasattr(found, name):
            raise ConfigurationError(
                f"redis-py {redis.__version__} has no {type(found).__name__}.{name}, which "
                "Tidework needs; install an older release of redis, or a newer one of tidework"
            )
        found = getattr(found, name)
    return found


def error_maker_of(
    connection: AsyncConnection | BlockingConnection,
) -> Callable[[str], Exception]:
    """What makes an exception of redis-py's own class of the text of an error reply."""
    found: Callable[[str], Exception] = _inner(connection, "_parser", "parse_error")
    return found


def socket_of(connection: BlockingConnection) -> socket.socket:
    """The open socket of a connection of a program without an event loop."""
    found: socket.socket = _inner(connection, "_sock")
    return found


def transport_of(connection: AsyncConnection) -> asyncio.WriteTransport:
    """The open transport of a connection of an event loop."""
    found: asyncio.WriteTransport = _inner(connection, "_writer", "transport")
    return found


def is_open(connection: AsyncConnection) -> bool:
    """Has the event loop heard of no end? redis-py's own check suspends."""
    reader: asyncio.StreamReader | None = _inner(connection, "_reader")
    return reader is not None and not reader.at_eof()


def take_writer(connection: AsyncConnection) -> asyncio.StreamWriter | None:
    """The writer, if it is still connected. redis-py forgets it, and will not close it again.

    Close its transport before you drop it: a writer that is dropped open warns.
    """
    writer: asyncio.StreamWriter | None = _inner(connection, "_writer")
    _inner(connection, "_reader")
    inner: Any = connection
    inner._writer = inner._reader = None  # noqa: SLF001 - there is no other way to tell it
    return writer
