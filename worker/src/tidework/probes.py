"""Probes: /livez, /readyz, /redisz and /metrics on one port, from one thread, whatever Redis does.

The worker's and the operator's alike. A probe reads what the owner's loop wrote down last: no
import of the application, no round trip to Redis, no call into the loop.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Protocol

from tidework.errors import ConfigurationError
from tidework.metrics import CONTENT_TYPE

_PLAIN = "text/plain; charset=utf-8"

logger = logging.getLogger(__name__)


class Health(Protocol):
    """What the probes ask; answered from any thread. An empty answer is a yes, else the reason."""

    def livez(self) -> str:
        """Why the process should be restarted."""

    def readyz(self) -> str:
        """Why the process does not work (yet)."""

    def redisz(self) -> str:
        """Why Redis did not do what it was last asked; no reason to restart or to wait."""

    def metrics(self) -> bytes:
        """The page of Prometheus."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A probe that is cut off by its client is nobody's trouble.
    block_on_close = False

    def server_bind(self) -> None:
        # HTTPServer would ask the resolver for the host's name, which may take long.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "tidework", self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        logger.debug(
            "a probe of %s failed: %r", client_address, request, extra={"event": "probe_failed"}
        )


class ProbeServer:
    """Listens from its construction on. ``port`` 0 chooses a free one."""

    def __init__(self, host: str, port: int, health: Health) -> None:
        class Handler(_Handler):
            answers = health

        try:
            _Server.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._server = _Server((host, port), Handler)
        except OSError as error:
            raise ConfigurationError(
                f"the probes cannot listen on {host}:{port}: {error.strerror or error}; "
                "choose another port by TIDEWORK_PROBE_PORT (or --probe-port), 0 for any free one"
            ) from error
        self.port: int = self._server.server_address[1]
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="probes", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        # Not serve_forever: that wakes up twice a second to look whether it should end.
        while not self._closing:
            self._server.handle_request()

    def close(self) -> None:
        """Stop listening."""
        self._closing = True
        host, port = self._server.server_address[:2]
        try:
            socket.create_connection((str(host), port), timeout=1).close()
        except OSError:
            logger.debug(
                "the probes did not answer at the end",
                exc_info=True,
                extra={"event": "probe_failed"},
            )
        self._thread.join(timeout=2)
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    answers: Health
    timeout = 5

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/livez":
                self._say(self.answers.livez)
            case "/readyz":
                self._say(self.answers.readyz)
            case "/redisz":
                self._say(self.answers.redisz)
            case "/metrics":
                self._answer(200, CONTENT_TYPE, self.answers.metrics())
            case _:
                self._answer(404, _PLAIN, b"there are /livez, /readyz, /redisz and /metrics\n")

    def _say(self, ask: Callable[[], str]) -> None:
        reason = ask()
        self._answer(503 if reason else 200, _PLAIN, f"{reason or 'ok'}\n".encode())

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        logger.debug(format, *args, extra={"event": "probe_answered"})
