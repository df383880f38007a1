"""Is a connection as it was left? Asked before one that lay idle is used again.

An event loop that did not turn meanwhile has not heard that the server closed it, and a program
without one never hears of it. What is found closed is replaced before anything is sent.
"""

from __future__ import annotations

import select
from typing import Protocol


class _HasFileno(Protocol):
    def fileno(self) -> int: ...


class Silence:
    """Over the socket of one connection."""

    def __init__(self, socket: _HasFileno) -> None:
        self._poll = select.poll()
        self._poll.register(socket, select.POLLIN)

    def holds(self) -> bool:
        """Nothing can be read: neither the end, nor what nobody has asked for."""
        return not self._poll.poll(0)
