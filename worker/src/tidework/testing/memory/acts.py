"""What people did, in the memory model."""

from __future__ import annotations

from dataclasses import replace

from tidework.broker.acts import MOST_ACTS, Act, ActPage, act_page
from tidework.clock import from_ms, to_ms
from tidework.testing.memory.calls import MemoryCalls


class MemoryActs(MemoryCalls):
    """The acts of the MemoryBroker."""

    async def note_act(self, namespace: str, act: Act) -> bool:
        noted = self._acts.setdefault(namespace, [])
        kept = replace(act, at=from_ms(to_ms(act.at)))
        if any(each == kept for _, each in noted):
            return False
        noted.append((noted[-1][0] + 1 if noted else 1, kept))
        del noted[:-MOST_ACTS]
        return True

    async def acts(self, namespace: str, *, before: int | None = None, limit: int = 100) -> ActPage:
        noted = reversed(self._acts.get(namespace, []))
        found = [(number, act) for number, act in noted if before is None or number < before]
        return act_page(found[: limit + 1], limit)
