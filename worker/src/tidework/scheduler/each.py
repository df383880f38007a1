"""Do the same for many at once, with a bound on how many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from tidework.errors import BrokerError, StaleTermError

Item = TypeVar("Item")


async def for_each(
    items: Collection[Item], act: Callable[[Item], Awaitable[None]], *, at_once: int
) -> None:
    """Await ``act`` for every item, ``at_once`` of them at a time.

    After a BrokerError no further item is begun; it is raised when the others have ended, a
    StaleTermError before all others.
    """
    waiting = iter(items)
    errors: list[BrokerError] = []

    async def take_turns() -> None:
        for item in waiting:
            try:
                await act(item)
            except BrokerError as error:
                errors.append(error)
            if errors:
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(items))):
            group.create_task(take_turns())
    if errors:
        raise next((found for found in errors if isinstance(found, StaleTermError)), errors[0])
