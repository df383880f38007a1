"""Sentinels say which server is the primary; they are asked at the start and after trouble.

They are asked one after the other until one knows the service. Whoever gave an answer that
turned out wrong is asked last the next time: it may be cut off from the others.
"""

from __future__ import annotations

from dataclasses import replace

from redis.exceptions import RedisError

from tidework.broker.connection.refusals import unanswered
from tidework.broker.connection.routes import Inquiry, Keep, rotated
from tidework.broker.connection.servers import Servers, Side, ask
from tidework.errors import BrokerUnavailableError
from tidework.model.redis_url import Place, RedisUrl

ANSWER_TIMEOUT_S = 2.0
"""A Sentinel that stands still must not keep us from asking the next one."""


class SentinelRoute:
    """The primary that Sentinels know under the URL's service name has every key.

    keep: closes the connections to a former primary, so that nobody waits there for an answer
    """

    def __init__(self, side: Side, url: RedisUrl, keep: Keep, named_by: str) -> None:
        self._url = url
        self._keep = keep
        self._named_by = named_by
        self._sentinels = Servers(
            side, replace(url, database=0), url.sentinel_login, ANSWER_TIMEOUT_S
        )
        self._to_ask = list(url.places)
        self._primary: Place | None = None
        self._inquiry = Inquiry(side, self._ask)

    async def prepare(self) -> None:
        if self._primary is None:
            await self._inquiry.ask(lambda: self._primary is not None)

    def place_at_once(self, _key: str | None, /) -> Place | None:
        return self._primary

    def place_of(self, _key: str | None, /) -> Place:
        found = self._primary
        if found is None:
            raise BrokerUnavailableError(f"the primary of {self._url.service!r} changes; try again")
        return found

    def doubt(self, place: Place) -> None:
        if place == self._primary:
            self._primary = None
            self._to_ask = rotated(self._to_ask)

    def follow(self, _key: str, _place: Place, /) -> bool:
        return False

    async def close(self) -> None:
        self._primary = None
        await self._sentinels.close()

    def abandon(self) -> None:
        self._primary = None
        self._sentinels.abandon()

    async def _ask(self) -> None:
        heard: dict[Place, Exception | str] = {}
        words = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._url.service)
        for sentinel in self._to_ask:
            try:
                reply = await ask(self._sentinels.at(sentinel), words)
            except (RedisError, OSError) as error:
                heard[sentinel] = error
                continue
            if reply is not None:
                host, port = reply
                found = Place(host.decode(), int(port))
                self._to_ask = sorted(self._to_ask, key=lambda place: place != sentinel)
                await self._keep([found])
                self._primary = found
                return
            heard[sentinel] = "knows no such service"
        raise unanswered(
            f"no Sentinel says where the primary of {self._url.service!r} is",
            heard,
            f"check that {self._named_by} names Sentinels and, as its path, the service; "
            "sentinel_username and sentinel_password are its options",
        )
