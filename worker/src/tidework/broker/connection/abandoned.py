"""Closes the socket of a connection whose event loop turns no more.

A transport closes by a turn of its loop. When that is closed, or its thread has ended, or this is a
fork's child and the loop its parent's, there is none: asyncio's last step is made here instead.
Nothing is sent, and the server hears of it in the first two cases only, as it should.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any


def abandon_transport(transport: asyncio.BaseTransport) -> None:
    """Close it without its loop."""
    inner: Any = transport
    tls = getattr(inner, "_ssl_protocol", None)
    if tls is not None:
        inner._closed = True  # noqa: SLF001 - else it warns that nobody has closed it
        inner = tls._transport  # noqa: SLF001 - no other way to it
    # Whoever is told of the end may want a turn of the loop: in vain, and it does not matter.
    with suppress(Exception):
        if not hasattr(inner, "_call_connection_lost"):
            inner.abort()  # not asyncio's own: its loop closes what it has
            return
        inner._closing = True  # noqa: SLF001 - as above
        inner._call_connection_lost(None)  # noqa: SLF001 - its last step
