"""A provider of OpenID Connect on a loopback port; where a test asks for it, it does wrong."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from typing import Any, Self
from urllib.parse import parse_qs, urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.waiting import wait_until

CLIENT, SECRET = "tidework", "client-secret-of-tests"


class OidcProvider:
    """Whoever comes is signed in as ``claims`` say.

    claims:   added to the ID token, or instead of its own; None leaves one out
    alg, key: by which the next ID token is signed
    redeemed: codes that were used
    """

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.issuer = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.claims: dict[str, Any] = {}
        self.alg = "RS256"
        self.keys = [new_key("k1")]
        self.key = self.keys[0]
        self.told_issuer = self.issuer
        self.redeemed: list[str] = []
        self.key_reads = 0
        self._codes: dict[str, dict[str, str]] = {}
        app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._document),
                Route("/keys", self._keys),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
            ]
        )
        config = uvicorn.Config(app, log_config=None, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self._server.started)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()

    def rotate(self) -> None:
        """Sign by a new key; the old one is not published any more."""
        self.keys = [new_key("k2")]
        self.key = self.keys[0]

    async def _document(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.told_issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
            }
        )

    async def _keys(self, _: Request) -> Response:
        self.key_reads += 1
        return JSONResponse({"keys": [key.as_dict(private=False) for key in self.keys]})

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        code = f"code{len(self._codes)}"
        self._codes[code] = asked
        query = urlencode({"code": code, "state": asked["state"], "iss": self.issuer})
        return RedirectResponse(f"{asked['redirect_uri']}?{query}", 303)

    async def _token(self, request: Request) -> Response:
        form = {name: found[0] for name, found in parse_qs((await request.body()).decode()).items()}
        asked = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            asked is None
            or form.get("client_secret") != SECRET
            or form["redirect_uri"] != asked["redirect_uri"]
            or challenge != asked["code_challenge"]
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        self.redeemed.append(form["code"])
        return JSONResponse({"token_type": "Bearer", "id_token": self._id_token(asked["nonce"])})

    def _id_token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "42",
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
            "email": "ann@example.com",
            "email_verified": True,
            "groups": ["ops", "others"],
        } | self.claims
        told = {name: value for name, value in claims.items() if value is not None}
        if self.alg in ("none", "HS256"):
            return self._signed_wrongly(told)
        header = {"alg": self.alg, "kid": self.key.kid}
        return jwt.encode(header, told, self.key, algorithms=[self.alg])

    def _signed_wrongly(self, claims: dict[str, Any]) -> str:
        """Not at all, or by the public key as if it were a shared one."""
        head = _encoded(json.dumps({"alg": self.alg, "kid": self.key.kid}).encode())
        text = head + b"." + _encoded(json.dumps(claims).encode())
        public = self.key.as_pem(private=False)
        signature = hmac.digest(public, text, "sha256") if self.alg == "HS256" else b""
        return (text + b"." + _encoded(signature)).decode()


def _encoded(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def new_key(kid: str) -> RSAKey:
    """An RSA key with this id."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})
