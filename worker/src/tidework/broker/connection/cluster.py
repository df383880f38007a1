"""A Cluster's map: which of its servers has which hash slots.

All keys of a queue are in one slot (their names share a hash tag), the registry is in one of its
own. The map is read at the start and after trouble, from whichever server answers; a server that
says where a key has moved to is believed at once, and asked first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from redis.crc import key_slot
from redis.exceptions import RedisError

from tidework.broker.connection.refusals import unanswered
from tidework.broker.connection.routes import Inquiry, Keep, rotated
from tidework.broker.connection.servers import Servers, Side, ask
from tidework.errors import BrokerUnavailableError
from tidework.model.redis_url import Place, RedisUrl

SLOTS = 16384


class ClusterRoute:
    """Every key is where the Cluster's map says.

    servers: those to ask for the map
    keep:    closes the connections to servers that left the Cluster
    """

    def __init__(
        self, side: Side, url: RedisUrl, servers: Servers, keep: Keep, named_by: str
    ) -> None:
        self._url = url
        self._servers = servers
        self._keep = keep
        self._named_by = named_by
        self._slots: Sequence[Place | None] = ()
        self._moved: dict[int, Place] = {}
        self._to_ask: list[Place] = list(url.places)
        self._suspects: set[Place] = set()
        self._is_current = False
        self._inquiry = Inquiry(side, self._ask)

    async def prepare(self) -> None:
        if not self._is_current:
            await self._inquiry.ask(lambda: self._is_current)

    def place_at_once(self, key: str | None, /) -> Place | None:
        if not self._is_current or key is None:
            return None
        slot = key_slot(key.encode())
        return self._moved.get(slot) or self._slots[slot]

    def place_of(self, key: str | None, /) -> Place:
        if key is None:
            return next(place for place in self._slots if place is not None)
        slot = key_slot(key.encode())
        found = self._moved.get(slot) or self._slots[slot]
        if found is None:
            self._is_current = False
            raise BrokerUnavailableError(
                f"the Redis Cluster of {self._url} has no server for slot {slot} (key {key}); "
                "see CLUSTER INFO and CLUSTER NODES for what is missing"
            )
        return found

    def doubt(self, place: Place) -> None:
        self._is_current = False
        self._suspects.add(place)
        # Whoever drew the map may be cut off from the others.
        self._to_ask = rotated(self._to_ask)

    def follow(self, key: str, place: Place, /) -> bool:
        # The other servers may learn of it later than we do.
        self._moved[key_slot(key.encode())] = place
        self._to_ask = [place, *self._to_ask]
        self._suspects.discard(place)
        self._is_current = False
        return True

    async def close(self) -> None:
        self._is_current = False

    def abandon(self) -> None:
        self._is_current = False

    async def _ask(self) -> None:
        heard: dict[Place, Exception | str] = {}
        # Whoever gave trouble may stand still. The URL's servers come last, they may be gone.
        places = dict.fromkeys((*self._to_ask, *self._url.places))
        for place in sorted(places, key=self._suspects.__contains__):
            try:
                reply = await ask(self._servers.at(place), ("CLUSTER", "SLOTS"))
            except (RedisError, OSError) as error:
                heard[place] = error
                continue
            if reply:
                await self._draw(reply, place)
                return
            heard[place] = "knows of no slots"
        raise unanswered(
            f"no server of the Redis Cluster at {self._url} says which one has which slots",
            heard,
            f"check that {self._named_by} names servers of a Cluster, and user and password",
        )

    async def _draw(self, reply: Any, asked: Place) -> None:
        slots: list[Place | None] = [None] * SLOTS
        servers: dict[Place, None] = {}
        for first, last, places in _read_slots(reply, asked):
            slots[first : last + 1] = places[:1] * (last + 1 - first)
            servers.update(dict.fromkeys(places))
        self._slots = slots
        self._moved.clear()
        self._to_ask = sorted(servers, key=lambda place: place != asked)
        self._suspects.clear()
        self._is_current = True
        await self._keep(self._to_ask)


def _read_slots(reply: Any, asked: Place) -> Iterator[tuple[int, int, list[Place]]]:
    """First and last slot, and the places of their servers, the primary's first."""
    for first, last, *servers in reply:
        # A server that does not know its own name leaves it out.
        hosts = [server[0].decode() if server[0] else asked.host for server in servers]
        yield (
            first,
            last,
            [Place(host, server[1]) for host, server in zip(hosts, servers, strict=True)],
        )
