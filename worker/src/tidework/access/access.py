"""Identify a caller: the seam that every way to sign in implements."""

from __future__ import annotations

from typing import Protocol

from starlette.requests import HTTPConnection

from tidework.access.caller import Caller, Permission
from tidework.errors import ForeignPageError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Access(Protocol):
    """Decides who a request comes from."""

    async def identify(self, request: HTTPConnection) -> Caller:
        """The caller. Raises UnauthenticatedError, ForeignPageError."""


class Everybody:
    """Every caller is the same one, and nobody signs in: for an application that checks itself."""

    def __init__(self, permission: Permission, name: str = "anonymous") -> None:
        self._caller = Caller(name, permission)

    async def identify(self, request: HTTPConnection) -> Caller:  # noqa: ARG002 - as the others
        """That one caller, whatever the request says."""
        return self._caller


class Loopback:
    """Whoever reaches the loopback of this machine is one person, and nobody signs in.

    A web page could reach it as well, under a name of its own that leads here: so the request has
    to name the loopback.
    """

    def __init__(self, permission: Permission, name: str = "local") -> None:
        self._caller = Caller(name, permission, via="loopback")

    async def identify(self, request: HTTPConnection) -> Caller:
        """That person. Raises ForeignPageError for a request by another name."""
        if request.url.hostname not in LOOPBACK_NAMES:
            raise ForeignPageError(
                f"this server is for the machine that it runs on, and the request came for "
                f"{request.url.hostname!r}; use http://127.0.0.1 or http://localhost"
            )
        return self._caller
