"""How the Broker on Redis calls its scripts: arguments, durability, opening a queue."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tidework.broker.connection.transport import Transport
from tidework.broker.keys import LAYOUT, REGISTRY
from tidework.broker.scripts import Call, Value, load_script
from tidework.errors import (
    ConfigurationError,
    LayoutError,
    StaleTermError,
)
from tidework.model.durability import Durability
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import LimitsOf, QueueLimits

CONFIGURATION_AGE_S = 60.0
"""How long a queue's configuration is relied on before it is read again."""


class RedisCalls:
    """What every part of the RedisBroker stands on."""

    def __init__(self, transport: Transport, limits: QueueLimits | LimitsOf | None = None) -> None:
        self.transport = transport
        same = QueueLimits() if limits is None else limits
        self._limits_of: LimitsOf = same if callable(same) else lambda _: same
        self._opened: dict[QueueName, tuple[float, Durability]] = {}
        """Since when, and how durable its writes are, as it was then."""

    def _call(
        self, name: str, queue: QueueName, rest: Sequence[Value] = (), **named: Value
    ) -> Call:
        script = load_script(name)
        return Call(script, script.keys_of(queue), script.argv(named, rest))

    async def _run(
        self, name: str, queue: QueueName, rest: Sequence[Value] = (), **named: Value
    ) -> Any:
        return await self.transport.run(self._call(name, queue, rest, **named))

    async def _write(
        self, name: str, queue: QueueName, rest: Sequence[Value] = (), **named: Value
    ) -> Any:
        """As ``_run``, for what the caller is told to be safe: as durable as the queue asks."""
        known = self._opened.get(queue)
        if known is None or time.monotonic() - known[0] > CONFIGURATION_AGE_S:
            self._opened.pop(queue, None)
            await self.open_queue(queue)
            known = self._opened[queue]
        return await self.transport.run(self._call(name, queue, rest, **named), known[1])

    async def open_queue(self, queue: QueueName) -> None:
        if queue in self._opened:
            return
        layout, least, durability = await self._run("open_queue", queue, layout=LAYOUT)
        if least > LAYOUT:
            raise LayoutError(
                f"queue {queue} has layout {layout} and needs clients of layout {least} or later; "
                f"this one has {LAYOUT}: upgrade tidework"
            )
        if layout < LAYOUT:
            raise LayoutError(
                f"queue {queue} has layout {layout}, this client has {LAYOUT}: upgrade it with "
                "the release between"
            )
        await self._run("register", queue, entry=str(queue))
        # A value that only a later version knows is not ours to refuse: as safe as we can.
        known = durability.decode() or Durability.ASYNC
        chosen = Durability(known) if known in set(Durability) else Durability.REPLICA
        self._opened[queue] = (time.monotonic(), chosen)

    async def queues(self) -> tuple[QueueName, ...]:
        found = await self.transport.command("SMEMBERS", REGISTRY)
        names = []
        for raw in found:
            try:
                names.append(QueueName.parse(raw.decode(errors="replace")))
            except ConfigurationError:
                continue  # somebody else's entry: all namespaces share the registry
        return tuple(sorted(names))

    async def close(self) -> None:
        self._opened.clear()
        await self.transport.close()


def due_ms(job: Job) -> str:
    """As scripts take it: '' = now, with a sign from now on, else Unix time (fragments/insert)."""
    if job.delay is not None:
        return f"{round(job.delay * 1000):+d}"
    return "" if job.available_at is None else str(round(job.available_at * 1000))


def unique_spec(job: Job) -> Value:
    found = job.unique
    if found is None:
        return ""
    ttl_ms = "" if found.ttl is None else max(1, round(found.ttl * 1000))
    return f"{found.until[0]}{found.on_conflict[0]}{ttl_ms}:{found.key}"


def fenced(queue: QueueName, term: int, reply: Any) -> Any:
    if reply[0] == b"stale":
        raise StaleTermError(str(queue), term, reply[1])
    return reply[1]
