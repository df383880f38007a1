"""Identify a caller: the seam that every way to sign in implements."""

from __future__ import annotations

from typing import Protocol

from starlette.requests import HTTPConnection

from tidework.access.caller import Caller, Permission


class Access(Protocol):
    """Decides who a request comes from."""

    async def identify(self, request: HTTPConnection) -> Caller:
        """The caller. Raises UnauthenticatedError."""


class Everybody:
    """Every caller is the same one, and nobody signs in: for a loopback, or to look only."""

    def __init__(self, permission: Permission, name: str = "anonymous") -> None:
        self._caller = Caller(name, permission)

    async def identify(self, request: HTTPConnection) -> Caller:  # noqa: ARG002
        """That one caller, whatever the request says."""
        return self._caller
