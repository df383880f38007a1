"""The product's Broker over a server whose scripts take their time from the test.

No server lets its clock be set. Every script reads it in one fragment, which is exchanged here:
the moment travels as a further KEYS, a name that no script looks up. The expiry of a key is the
server's own; twins.py acts it out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from tidework.broker.connection.transport import Call, Transport
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.broker.scripts import Script, Value
from tidework.clock import Clock, to_ms
from tidework.model.durability import Durability
from tidework.model.identity import QueueName
from tidework.model.lease import QueueLimits

NOW_OF_SERVER = (files("tidework.broker") / "scripts/fragments/now.lua").read_text("utf-8")
NOW_OF_TEST = "local now = tonumber(KEYS[#KEYS])\n"
MOST_TALLIES = ("MOST_TALLIES = 32768", "MOST_TALLIES = 200")
"""A machine does not count for so long."""


class ClockedBroker(RedisBroker):
    """Time stands still on it unless the test moves the clock."""

    def __init__(self, transport: Transport, limits: QueueLimits, clock: Clock) -> None:
        super().__init__(transport, limits)
        self._clock = clock

    def _call(
        self, name: str, queue: QueueName, rest: Sequence[Value] = (), **named: Value
    ) -> Call:
        script, keys, argv = super()._call(name, queue, rest, **named)
        return Call(with_clock(script), (*keys, str(to_ms(self._clock.now()))), argv)

    async def open_queue(self, queue: QueueName) -> None:
        """Whatever is configured: the server has no replica."""
        await super().open_queue(queue)
        since, _ = self._opened[queue]
        self._opened[queue] = (since, Durability.ASYNC)


@cache
def with_clock(script: Script) -> Script:
    """The same script by the clock of the test."""
    text = script.text.replace(NOW_OF_SERVER, NOW_OF_TEST).replace(*MOST_TALLIES)
    assert "'TIME'" not in text, f"{script.name}.lua reads the server's clock by itself"
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return replace(script, text=text, sha=sha)
