"""The HTTP server: it listens from its construction on, and serves until it is stopped.

Signals are its owner's: uvicorn would take them for itself.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from tidework.errors import ConfigurationError

END_WAIT_S = 3
"""How long requests may go on once the server is to end."""
NEXT_PORTS = 50


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ApiServer:
    """Serves an application on ``host`` and ``port``; 0 = any that is free.

    or_next: if the port is taken, take the next free one. Raises ConfigurationError if it cannot
    listen.
    """

    def __init__(self, app: FastAPI, host: str, port: int, *, or_next: bool = False) -> None:
        self._socket = _listening(host, port, NEXT_PORTS if or_next else 1)
        self.port: int = self._socket.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.port}"
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            log_level="warning",
            lifespan="off",
            server_header=False,
            # Whom to believe about a caller's address is decided in access/, not by uvicorn.
            proxy_headers=False,
            timeout_graceful_shutdown=END_WAIT_S,
        )
        self._server = _Server(config)
        self._app = app

    async def serve(self) -> None:
        """Until ``stop``."""
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """Take no further requests; those that are served may end, and streams of events do."""
        self._app.state.hub.close()
        self._server.should_exit = True

    def close(self) -> None:
        """Give the port back, of a server that never served as well."""
        self._socket.close()


def _listening(host: str, port: int, candidates: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last = min(port + candidates, 65536) if port else 1
    for candidate in range(port, last):
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, candidate))
            found.listen(512)
        except OSError as error:
            found.close()
            if error.errno != errno.EADDRINUSE or candidate + 1 == last:
                raise _refusal(host, port, error) from error
        else:
            return found
    raise ConfigurationError(f"{host}:{port}: a port is a number from 0 to 65535")


def _refusal(host: str, port: int, error: OSError) -> ConfigurationError:
    why = error.strerror or str(error)
    if error.errno == errno.EADDRINUSE:
        why = "another program listens there"
    return ConfigurationError(
        f"the HTTP API cannot listen on {host}:{port}: {why}; choose another port, 0 for any "
        "that is free"
    )
