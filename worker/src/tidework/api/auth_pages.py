"""Signing in and out with a browser; not part of the API that programs use."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from tidework.access.oidc.sign_in import CALLBACK, LOGIN, LOGOUT, OidcSignIn


def add_sign_in(app: FastAPI, sign_in: OidcSignIn) -> None:
    """Serve the addresses that a person's browser is sent to. They ask for no permission."""

    async def begin(request: Request) -> Response:
        return await sign_in.begin(request.query_params.get("to", "/"))

    async def finish(request: Request) -> Response:
        return await sign_in.finish(request)

    async def end(_request: Request) -> Response:
        return sign_in.end()

    app.add_route(LOGIN, begin, methods=["GET"], include_in_schema=False)
    app.add_route(CALLBACK, finish, methods=["GET"], include_in_schema=False)
    app.add_route(LOGOUT, end, methods=["POST"], include_in_schema=False)
