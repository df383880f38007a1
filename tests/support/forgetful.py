"""A transport to a server that has always just forgotten every script."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tidework.broker.connection.transport import Call, Transport
from tidework.broker.scripts import Value
from tidework.model.durability import Durability


class Forgetful:
    """Empties the server's script cache before every call; ``forgotten`` counts the scripts."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.forgotten: list[str] = []

    async def _forget(self, *calls: Call) -> None:
        self.forgotten += [script.name for script, _, _ in calls]
        await self._transport.command("SCRIPT", "FLUSH")

    async def run(self, call: Call, durability: Durability = Durability.ASYNC) -> Any:
        await self._forget(call)
        return await self._transport.run(call, durability)

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        await self._forget(*calls)
        return await self._transport.run_all(calls)

    async def run_each(self, calls: Sequence[Call]) -> list[Any]:
        await self._forget(*calls)
        return await self._transport.run_each(calls)

    async def command(self, *words: Value) -> Any:
        return await self._transport.command(*words)

    async def take(
        self, source: str, target: str, timeout: timedelta, then: Call | None = None
    ) -> tuple[bytes | None, Any]:
        if then is not None:
            await self._forget(then)
        return await self._transport.take(source, target, timeout, then)

    async def close(self) -> None:
        await self._transport.close()
