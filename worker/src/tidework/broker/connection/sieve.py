"""Keeps a reply that is longer than anybody reads from being put together in memory.

Whoever waits at an inbox gets what a foreign program has put there, whatever its length. Of a reply
that is too long the beginning is let through as if it were all; the rest is dropped as it comes.
"""

from __future__ import annotations

from tidework.broker.documents import BEGINNING_BYTES, MAX_DOCUMENT_BYTES, Beginning

_END = b"\r\n"
_LONGEST_HEADER = 32


class Sieve:
    """Of the first reply to one request. ``length``: of the reply, if it was cut; else 0"""

    def __init__(self) -> None:
        self.length = 0
        self._header: bytes | None = b""
        self._beginning = bytearray()
        self._left = 0

    def pass_on(self, data: bytes) -> bytes:
        """What of ``data`` the reader of the protocol is to see."""
        if self._left:
            return self._drop(data)
        if self._header is None:
            return data
        header = self._header + data
        end = header.find(_END, 0, _LONGEST_HEADER)
        if end < 0 and len(header) < _LONGEST_HEADER:
            self._header = header
            return b""
        self._header = None
        if not header.startswith(b"$") or not header[1:end].isdigit():
            return header
        length = int(header[1:end])
        if length <= MAX_DOCUMENT_BYTES:
            return header
        self.length, self._left = length, length + len(_END)
        return self._drop(header[end + len(_END) :])

    def _drop(self, data: bytes) -> bytes:
        self._beginning += data[: BEGINNING_BYTES - len(self._beginning)]
        dropped = min(len(data), self._left)
        self._left -= dropped
        if self._left:
            return b""
        kept = bytes(self._beginning)
        return b"$%d\r\n%b\r\n%b" % (len(kept), kept, data[dropped:])

    def named(self, reply: object) -> object:
        """The first reply as its caller gets it."""
        if self.length and isinstance(reply, bytes):
            return Beginning(reply, self.length)
        return reply
