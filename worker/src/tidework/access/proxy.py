"""A proxy that has identified the caller says so in headers, as oauth2-proxy does.

They are believed from the listed addresses alone: the address of the connection counts, whatever
headers say of it. From anybody else they are ignored, and the log says so once per address. The
proxy has to remove these headers from what it is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from ipaddress import ip_address

from starlette.requests import HTTPConnection

from tidework.access.access_file import ProxyPart
from tidework.access.caller import Caller
from tidework.access.grants import Grant, caller_of

MOST_STRANGERS = 1000

logger = logging.getLogger(__name__)


class TrustedProxy:
    """A Way: callers by the headers of a proxy."""

    def __init__(self, part: ProxyPart, grants: Sequence[Grant]) -> None:
        self._part = part
        self._grants = grants
        self._strangers: set[str] = set()

    async def recognize(self, request: HTTPConnection) -> Caller | None:
        """Whom the proxy names; None without its header, or from another address."""
        named = request.headers.getlist(self._part.user_header)
        if not named:
            return None
        address = "" if request.client is None else request.client.host
        if not self._is_proxy(address):
            self._tell_stranger(address)
            return None
        # A second header would be one that the proxy has not removed.
        if len(named) != 1 or not named[0].strip():
            return None
        told = request.headers.getlist(self._part.groups_header)
        groups = {group.strip() for text in told for group in text.split(",")} - {""}
        return caller_of(named[0].strip(), groups if len(told) == 1 else (), "proxy", self._grants)

    def _is_proxy(self, address: str) -> bool:
        try:
            found = ip_address(address)
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None) or found
        return any(mapped in network for network in self._part.addresses)

    def _tell_stranger(self, address: str) -> None:
        if address in self._strangers or len(self._strangers) >= MOST_STRANGERS:
            return
        self._strangers.add(address)
        logger.warning(
            "the header %s from %s is ignored: this is not one of the proxies",
            self._part.user_header,
            address or "an unknown address",
            extra={"event": "proxy_header_ignored"},
        )
