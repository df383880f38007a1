"""Connections that the import of an application has opened: every child that is forked has them.

Two processes that use one connection read each other's replies, and one that closes it tells the
server so for all. Sockets without a connection (datagrams, listening ones) and pairs whose other
end is here as well do no such harm.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

STANDARD = 2
"""Up to here: input, output and errors, which may be sockets of whoever started us."""
_LISTING = Path("/proc/self/fd")


def peers(without: Collection[int]) -> list[str]:
    """To whom this process is connected, ``without`` these descriptors; sorted, each one once.

    Empty where the system does not list descriptors.
    """
    return sorted({peer for fd in _sockets() if fd not in without and (peer := _peer_of(fd))})


def _sockets() -> Iterator[int]:
    numbers = [int(entry.name) for entry in _LISTING.iterdir()] if _LISTING.is_dir() else []
    for number in numbers:
        try:
            mode = os.fstat(number).st_mode
        except OSError:  # that of the listing
            continue
        if number > STANDARD and stat.S_ISSOCK(mode):
            yield number


def _peer_of(number: int) -> str:
    """'' unless it is a connection to somebody."""
    with socket.socket(fileno=os.dup(number)) as found:
        try:
            peer = found.getpeername()
        except OSError:
            return ""
        if found.type != socket.SOCK_STREAM:
            return ""
    if found.family == socket.AF_UNIX:
        return os.fsdecode(peer).replace("\0", "@")
    if found.family in (socket.AF_INET, socket.AF_INET6):
        host, port = peer[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return str(peer)
