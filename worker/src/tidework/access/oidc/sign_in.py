"""A person signs in: to the provider and back, then by a session in a cookie.

What is needed on the way back (state, nonce, the verifier of PKCE) lies encrypted in a cookie of
the person's browser, so nothing is kept here but which states were used, for as long as they could
be used again. The session names the person and those groups that the grants know; what these may do
is looked up at each request.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from tidework.access.access_file import OidcPart
from tidework.access.caller import Caller
from tidework.access.grants import Grant, caller_of
from tidework.access.oidc.provider import Provider
from tidework.access.oidc.seal import Seal
from tidework.clock import Clock
from tidework.errors import UnauthenticatedError

LOGIN = "/auth/login"
CALLBACK = "/auth/callback"
LOGOUT = "/auth/logout"
ON_THE_WAY = timedelta(minutes=10)
"""How long a person may take to sign in."""


class OidcSignIn:
    """A Way, and what the addresses /auth/... do."""

    def __init__(self, part: OidcPart, grants: Sequence[Grant], clock: Clock) -> None:
        self._part = part
        self._grants = grants
        self._clock = clock
        self._provider = Provider(part, clock)
        self._seal = Seal(part.session_key_file)
        self._is_secure = part.url.startswith("https:")
        # A browser takes a cookie with this prefix from this host alone, by TLS, for all paths.
        prefix = "__Host-" if self._is_secure else ""
        self._session_cookie = f"{prefix}tidework"
        self._login_cookie = f"{prefix}tidework-login"
        self._redirect_uri = f"{part.url}{CALLBACK}"
        self._used: dict[str, datetime] = {}

    async def recognize(self, request: HTTPConnection) -> Caller | None:
        """Whose session it is; None without one that is valid."""
        text = request.cookies.get(self._session_cookie)
        found = text and self._seal.open("session", text, self._clock.now())
        if not found:
            return None
        return caller_of(found["name"], found["groups"], "oidc", self._grants)

    async def begin(self, to: str) -> Response:
        """Send the person to the provider; ``to``: where to go afterwards, a path of ours."""
        endpoint = await self._provider.authorization_endpoint()
        way = {
            "state": secrets.token_urlsafe(32),
            "nonce": secrets.token_urlsafe(32),
            "verifier": secrets.token_urlsafe(48),
            "to": to if is_own_path(to) else "/",
        }
        digest = hashlib.sha256(way["verifier"].encode()).digest()
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self._part.client_id,
                "redirect_uri": self._redirect_uri,
                "scope": " ".join(self._part.scopes),
                "state": way["state"],
                "nonce": way["nonce"],
                "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
                "code_challenge_method": "S256",
            }
        )
        answer = RedirectResponse(f"{endpoint}{'&' if '?' in endpoint else '?'}{query}", 303)
        self._set(answer, self._login_cookie, "login", way, ON_THE_WAY)
        return answer

    async def finish(self, request: HTTPConnection) -> Response:
        """The person is back. Raises UnauthenticatedError."""
        way = self._way_back(request)
        query = request.query_params
        if "error" in query:
            raise UnauthenticatedError(f"the provider has refused: {query['error'][:100]!r}")
        if query.get("iss", self._part.issuer) != self._part.issuer:
            raise UnauthenticatedError("the answer comes from another provider")
        if not query.get("code"):
            raise UnauthenticatedError("the provider sent no code")
        claims = await self._provider.redeem(
            query["code"], way["verifier"], way["nonce"], self._redirect_uri
        )
        answer = RedirectResponse(way["to"], 303)
        lasts = timedelta(hours=self._part.session_hours)
        self._set(answer, self._session_cookie, "session", self._person(claims), lasts)
        self._forget(answer, self._login_cookie)
        return answer

    def end(self) -> Response:
        """Sign out here; the provider's own session goes on."""
        answer = Response(status_code=204)
        self._forget(answer, self._session_cookie)
        return answer

    def _way_back(self, request: HTTPConnection) -> dict[str, Any]:
        """What ``begin`` has kept in the browser, once."""
        now = self._clock.now()
        way = self._seal.open("login", request.cookies.get(self._login_cookie, ""), now)
        if way is None:
            raise UnauthenticatedError(
                f"this sign-in is over, or began in another browser; begin again at {LOGIN}"
            )
        state = request.query_params.get("state", "")
        if not hmac.compare_digest(state.encode(), way["state"].encode()):
            raise UnauthenticatedError(
                f"this is the answer to another sign-in; begin again at {LOGIN}"
            )
        self._used = {used: until for used, until in self._used.items() if until > now}
        if state in self._used:
            raise UnauthenticatedError(f"this answer was used already; begin again at {LOGIN}")
        self._used[state] = now + ON_THE_WAY
        return way

    def _person(self, claims: dict[str, Any]) -> dict[str, Any]:
        name = claims.get(self._part.name_claim)
        if not isinstance(name, str) or not name:
            raise UnauthenticatedError(
                f"the ID token has no claim {self._part.name_claim!r} to go by"
            )
        if self._part.name_claim == "email" and claims.get("email_verified") is not True:
            raise UnauthenticatedError(
                "the provider has not verified the e-mail address; choose another name_claim, "
                "such as 'sub', if it never does"
            )
        told = claims.get(self._part.groups_claim, [])
        groups = {told} if isinstance(told, str) else {str(group) for group in told}
        known = {grant.group for grant in self._grants}
        return {"name": name, "groups": sorted(groups & known)}

    def _set(
        self, answer: Response, cookie: str, use: str, value: dict[str, Any], lasts: timedelta
    ) -> None:
        text = self._seal.close(use, value, self._clock.now() + lasts)
        answer.set_cookie(
            cookie,
            text,
            max_age=int(lasts.total_seconds()),
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="lax",
        )

    def _forget(self, answer: Response, cookie: str) -> None:
        answer.delete_cookie(
            cookie, path="/", secure=self._is_secure, httponly=True, samesite="lax"
        )


def is_own_path(to: str) -> bool:
    """A path of this server, which no browser takes for another host."""
    return (
        to.startswith("/")
        and not to.startswith(("//", "/\\"))
        and to.isprintable()
        and "\\" not in to
    )
