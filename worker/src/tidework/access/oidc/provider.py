"""The provider: where it is, its keys, and what it says of the person whom a code stands for.

Its document and keys are read when they are needed, and kept for an hour. An ID token of a key that
is not known has the keys read again, but not more often than every ten seconds: keys rotate, and a
token that is made up must not keep us asking.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from tidework.access.access import LOOPBACK_NAMES
from tidework.access.access_file import OidcPart
from tidework.clock import Clock
from tidework.errors import UnauthenticatedError

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
"""Of ID tokens: signed by a key that the provider alone has."""
KEEP = timedelta(hours=1)
LEEWAY = timedelta(seconds=60)
"""By which the clocks of provider and server may differ."""
PAUSE = timedelta(seconds=10)
TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class _Known:
    document: dict[str, Any]
    keys: KeySet
    at: datetime


class Provider:
    """One provider of OpenID Connect. Its methods raise UnauthenticatedError."""

    def __init__(self, part: OidcPart, clock: Clock) -> None:
        self._part = part
        self._clock = clock
        self._known: _Known | None = None

    async def authorization_endpoint(self) -> str:
        """Where people are sent."""
        return str((await self._read()).document["authorization_endpoint"])

    async def redeem(
        self, code: str, verifier: str, nonce: str, redirect_uri: str
    ) -> dict[str, Any]:
        """The claims of the person whom a code stands for, checked."""
        known = await self._read()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": self._part.client_id,
            "code_verifier": verifier,
        }
        secret = _secret_of(self._part.client_secret_file)
        if secret:
            form["client_secret"] = secret
        answer = await self._ask("POST", known.document["token_endpoint"], form)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise UnauthenticatedError(
                "the provider sent no ID token; is 'openid' one of the scopes?"
            )
        return await self._check(token, nonce)

    async def _check(self, token: str, nonce: str) -> dict[str, Any]:
        known = await self._read()
        try:
            claims = self._decode(token, known.keys)
        except (JoseError, ValueError):
            if self._clock.now() - known.at < PAUSE:
                raise UnauthenticatedError(
                    "the ID token is not signed by a key of the provider"
                ) from None
            self._known = None
            known = await self._read()
            try:
                claims = self._decode(token, known.keys)
            except (JoseError, ValueError) as error:
                raise UnauthenticatedError(
                    "the ID token is not signed by a key of the provider"
                ) from error
        self._check_claims(claims, nonce)
        return claims

    @staticmethod
    def _decode(token: str, keys: KeySet) -> dict[str, Any]:
        return dict(jwt.decode(token, keys, algorithms=ALGORITHMS).claims)

    def _check_claims(self, claims: dict[str, Any], nonce: str) -> None:
        rules = jwt.JWTClaimsRegistry(
            now=int(self._clock.now().timestamp()),
            leeway=int(LEEWAY.total_seconds()),
            iss={"essential": True, "value": self._part.issuer},
            aud={"essential": True, "value": self._part.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            rules.validate(claims)
        except JoseError as error:
            raise UnauthenticatedError(f"the ID token is refused: {error}") from error
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if several and claims.get("azp") != self._part.client_id:
            raise UnauthenticatedError("the ID token is refused: it is for another client (azp)")

    async def _read(self) -> _Known:
        now = self._clock.now()
        if self._known is not None and now - self._known.at < KEEP:
            return self._known
        issuer = self._part.issuer
        document = await self._ask("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if document.get("issuer") != issuer:
            raise UnauthenticatedError(
                f"the provider says that it is {document.get('issuer')!r}, and the access file "
                f"that it is {issuer!r}; write it as the provider does"
            )
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            parts = urlsplit(str(document.get(name, "")))
            if parts.scheme != "https" and parts.hostname not in LOOPBACK_NAMES:
                raise UnauthenticatedError(f"the provider's {name} is not an https:// URL")
        try:
            keys = KeySet.import_key_set(await self._ask("GET", document["jwks_uri"]))  # type: ignore[arg-type]
        except (JoseError, ValueError, KeyError) as error:
            raise UnauthenticatedError("the provider's keys cannot be read") from error
        self._known = _Known(document, keys, now)
        return self._known

    async def _ask(
        self, method: str, url: str, form: dict[str, str] | None = None
    ) -> dict[str, Any]:
        try:
            async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
                answer = await client.request(method, url, data=form)
                answer.raise_for_status()
                found = answer.json()
        except httpx.HTTPStatusError as error:
            # Its text may hold what we sent.
            raise UnauthenticatedError(
                f"the provider refuses {urlsplit(url).path}: status {error.response.status_code}"
            ) from None
        except (httpx.HTTPError, ValueError) as error:
            raise UnauthenticatedError(
                f"the provider cannot be asked: {type(error).__name__}"
            ) from error
        if not isinstance(found, dict):
            raise UnauthenticatedError(
                f"the provider's answer of {urlsplit(url).path} is not an object"
            )
        return found


def _secret_of(file: Path | None) -> str:
    """Read each time, so that a secret can be renewed."""
    if file is None:
        return ""
    try:
        return file.read_text("utf-8").strip()
    except OSError as error:
        raise UnauthenticatedError(f"the client secret cannot be read: {error.strerror}") from error
