"""The guard at the door: a page of another site must not act in the name of who looks at it.

It stands outside of everything else of the application, so that no route, error or mounted
application can be forgotten. Browsers say where a request comes from, by ``Sec-Fetch-Site`` and
``Origin``; a page cannot change either. Programs send neither. Callers with a token are looked at
as well: a page of another origin has no business here, whatever it holds.

Every answer says how a browser is to take it, faults and refusals included.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidework.errors import ForeignPageError, TideworkError

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_PAGES = frozenset({"same-origin", "none"})
"""Of Sec-Fetch-Site; none = an act of the person's own, such as a bookmark."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
}


class Guard:
    """ASGI middleware.

    refusal: an error as the answer that says it
    origins: of pages that may act besides those of the requested host, as https://tasks.example.com
    """

    def __init__(
        self,
        app: ASGIApp,
        refusal: Callable[[TideworkError], ASGIApp],
        origins: frozenset[str] = frozenset(),
    ) -> None:
        self._app = app
        self._refusal = refusal
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or have the application do so."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                # What may be kept, such as a style sheet, says so itself.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            refuse_foreign_pages(HTTPConnection(scope), self._origins)
        except ForeignPageError as error:
            await self._refusal(error)(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)


def refuse_foreign_pages(request: HTTPConnection, origins: frozenset[str] = frozenset()) -> None:
    """Raises ForeignPageError for a request that may act and comes from a page of another site."""
    # A WebSocket has no method, and may act.
    if request.scope.get("method") in SAFE_METHODS:
        return
    origin = request.headers.get("origin")
    if origin in origins:
        return
    fetched_from = request.headers.get("sec-fetch-site", "none")
    host = request.headers.get("host", "").lower()
    # Not the scheme: a proxy may end TLS.
    is_own = origin is None or urlsplit(origin).netloc.lower() == host
    if fetched_from not in OWN_PAGES or not is_own:
        raise ForeignPageError(
            f"a page of {origin or 'another site'} sent this request; only pages of this server "
            f"({host}), and programs, may change something. If the page is yours, and a proxy "
            "changes the Host header, name its origin in TIDEWORK_DASHBOARD_ORIGINS"
        )
