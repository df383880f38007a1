"""Several ways to sign in, side by side: the first one that knows the caller counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from starlette.requests import HTTPConnection

from tidework.access.caller import Caller
from tidework.access.oidc.sign_in import OidcSignIn
from tidework.errors import UnauthenticatedError


class Way(Protocol):
    """One way to sign in."""

    async def recognize(self, request: HTTPConnection) -> Caller | None:
        """The caller; None if the request has nothing that this way accepts."""


class Ways:
    """An Access.

    remedy: what a caller does who is not known
    sign_in: the way that has addresses of its own, for browsers
    """

    def __init__(self, ways: Sequence[Way], remedy: str, sign_in: OidcSignIn | None = None) -> None:
        self.sign_in = sign_in
        self._ways = ways
        self._remedy = remedy

    async def identify(self, request: HTTPConnection) -> Caller:
        """The caller. Raises UnauthenticatedError."""
        for way in self._ways:
            caller = await way.recognize(request)
            if caller is not None:
                return caller
        if "authorization" in request.headers:
            raise UnauthenticatedError("this token is not known, or not any more")
        raise UnauthenticatedError(f"this server asks who you are: {self._remedy}")
