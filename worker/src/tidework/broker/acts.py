"""What people did by the API, as the store keeps it: who, what, on what, why, when, how it ended.

The acts of a namespace lie together, numbered as they came; only the newest MOST_ACTS are kept. The
text of an act is what is repeated after a lost reply: one that is there already is not added.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tidework.clock import from_ms, to_ms

MOST_ACTS = 10_000


@dataclass(frozen=True, slots=True)
class Act:
    """Something that a person, or a program with an identity, had done.

    id: tells it from every other one
    by, via, permission: whose act, how that was proved, and what the caller may do
    name, target: the operation, as the OpenAPI document calls it, and the path that it was for
    reason: in the caller's own words, '' without any
    status: of the answer, as HTTP has it
    """

    id: str
    at: datetime
    by: str
    via: str
    permission: str
    name: str
    target: str
    reason: str
    status: int


@dataclass(frozen=True, slots=True)
class ActPage:
    """Acts by their numbers, the newest first; ``before``: where the next page begins, or None."""

    acts: tuple[tuple[int, Act], ...]
    before: int | None


class Acts(Protocol):
    """What people did, for people. Nothing is done by it."""

    async def note_act(self, namespace: str, act: Act) -> bool:
        """Keep it with the acts of the namespace; False if it is there already."""

    async def acts(self, namespace: str, *, before: int | None = None, limit: int = 100) -> ActPage:
        """A page of acts, the newest first. before: the number of an act; those below it."""


def act_text(act: Act) -> str:
    """The act as it is stored."""
    fields = [act.id, to_ms(act.at), act.by, act.via, act.permission]
    return json.dumps([*fields, act.name, act.target, act.reason, act.status])


def read_act(text: str) -> Act:
    """The act of a text. Raises ValueError for what is none."""
    found = json.loads(text)
    if not isinstance(found, list) or len(found) < 9:
        raise ValueError("this is not an act")
    name, at, *rest = found[:9]
    return Act(name, from_ms(at), *rest)


def act_page(found: list[tuple[int, Act]], limit: int) -> ActPage:
    """The page of ``limit`` acts, of which one more was asked for."""
    page = tuple(found[:limit])
    return ActPage(page, page[-1][0] if len(found) > limit else None)
