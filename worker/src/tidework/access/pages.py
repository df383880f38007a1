"""A page of another site must not act in the name of the person who looks at it.

Browsers say where a request comes from, by ``Sec-Fetch-Site`` and ``Origin``; a page cannot change
either. Programs send neither, and have no cookies that a page could use.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from tidework.errors import ForeignPageError

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN = frozenset({"same-origin", "none"})


def refuse_foreign_pages(request: HTTPConnection) -> None:
    """Raises ForeignPageError for a request that changes something and comes from another site."""
    if request.scope["method"] in SAFE_METHODS:
        return
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    is_foreign = site is not None and site not in _OWN
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        is_foreign = True
    if is_foreign:
        raise ForeignPageError(
            f"a page of {origin or 'another site'} sent this request; only pages of this server, "
            "and programs, may change something"
        )
