"""A server of one test: what it answers to each request of each connection is written down.

A request ends where a read of the socket ends: requests of these tests are short.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

Answers = Sequence[Sequence[bytes]]
"""Per request what is sent, piece after piece; the connection ends after the last of them."""


class ScriptedServer:
    """Takes one connection after the other, each with the next answers."""

    def __init__(self, *connections: Answers) -> None:
        self._connections = connections
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self.port: int = self._listener.getsockname()[1]
        self.asked: list[bytes] = []

    def _serve(self) -> None:
        for answers in self._connections:
            connection, _ = self._listener.accept()
            with connection:
                connection.settimeout(20)
                for answer in answers:
                    request = connection.recv(65_536)
                    if not request:
                        break
                    self.asked.append(request)
                    for piece in answer:
                        connection.sendall(piece)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.join(20)
        self._listener.close()
