"""The loops of a worker as services: they run until they are ended, and if one dies, all end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tidework.loop import Loop


class Services:
    """Loops that run until they are ended; if one dies, all end.

    Each is told to stop as well as cancelled: redis-py swallows a cancellation that comes while
    it connects.
    """

    def __init__(self, group: asyncio.TaskGroup, loops: Sequence[Loop]) -> None:
        self._tasks = {loop: group.create_task(self._run(loop), name=loop.name) for loop in loops}

    async def _run(self, loop: Loop) -> None:
        try:
            await loop.run()
        except Exception:
            self.stop()
            raise

    def stop(self) -> None:
        """Have all end after their current round."""
        for loop in self._tasks:
            loop.stop()

    async def end(self, loops: Sequence[Loop]) -> None:
        """End these."""
        tasks = {self._tasks[loop] for loop in loops}
        while tasks:
            for loop in loops:
                loop.stop()
                self._tasks[loop].cancel()
            _, tasks = await asyncio.wait(tasks, timeout=0.1)
