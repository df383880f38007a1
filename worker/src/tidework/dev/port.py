"""The port of the embedded server: may it listen there, and if not, who does.

Asked before the server is started: a server that finds its port taken ends with a line in a log,
and whoever looks for it on that port meets somebody else's.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import suppress

from tidework.errors import ConfigurationError

HOST = "127.0.0.1"
_ANSWER_WAIT_S = 1.0


def free_port() -> int:
    """A port of the loopback that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


async def check_port(port: int) -> None:
    """Raises ConfigurationError if the embedded server cannot listen on ``port``."""
    refusal = _refusal_to_listen(port)
    if refusal is None:
        return
    flag = f"--redis-port {port}"
    if refusal == errno.EADDRINUSE:
        raise ConfigurationError(f"{flag}: {await _taken(port)}")
    if refusal in (errno.EACCES, errno.EPERM):
        raise ConfigurationError(
            f"{flag}: this user may not listen there (ports below 1024 mostly need root); "
            "choose one from 1024 to 65535, or leave the option out to have a free one"
        )
    raise ConfigurationError(
        f"{flag}: nothing can listen there: {errno.errorcode.get(refusal, refusal)}; "
        "choose another port, or leave the option out to have a free one"
    )


def _refusal_to_listen(port: int) -> int | None:
    with socket.socket() as probe:
        # As the server does: what has just ended there is not in its way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError as error:
            return error.errno
    return None


async def _taken(port: int) -> str:
    if await _speaks_redis(port):
        return (
            "another Redis or Valkey server listens there, and nothing was written into it; "
            "choose another port, or give "
            f"--redis-url redis://{HOST}:{port}/0 in its place to work with that server"
        )
    return (
        "another program listens there; choose another port, or leave the option out to have a "
        "free one"
    )


async def _speaks_redis(port: int) -> bool:
    """Also a server that asks for a password answers a PING in Redis' way."""
    try:
        async with asyncio.timeout(_ANSWER_WAIT_S):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                writer.write(b"PING\r\n")
                line = await reader.readline()
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
    except (OSError, ValueError):
        return False
    return line.startswith((b"+PONG", b"-NOAUTH", b"-LOADING", b"-DENIED", b"-MASTERDOWN"))
