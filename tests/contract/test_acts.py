"""What people did is kept once, in its order and in its namespace, and only the newest of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.contract.conftest import Kit
from tidework.broker import acts as kept
from tidework.broker.acts import Act
from tidework.broker.redis import acts as redis_acts
from tidework.testing.memory import acts as memory_acts

ACT = Act(
    id="1",
    at=datetime(2026, 1, 5, 10, 0, 0, 123_000, UTC),
    by="ann",
    via="token",
    permission="operator",
    name="pause_queue",
    target="/queues/emails/pause",
    reason='the "mail" server\tmoves é',
    status=200,
)


async def note(kit: Kit, *ids: str) -> None:
    for each in ids:
        assert await kit.broker.note_act(kit.queue.namespace, replace(ACT, id=each))


async def ids(kit: Kit, *, before: int | None = None, limit: int = 100) -> list[str]:
    page = await kit.broker.acts(kit.queue.namespace, before=before, limit=limit)
    return [act.id for _, act in page.acts]


async def test_an_act_is_told_as_it_was_noted(kit: Kit) -> None:
    assert await kit.broker.note_act(kit.queue.namespace, ACT)

    assert (await kit.broker.acts(kit.queue.namespace)).acts == ((1, ACT),)


async def test_an_act_that_is_noted_again_is_one(kit: Kit) -> None:
    await note(kit, "1", "2")

    assert not await kit.broker.note_act(kit.queue.namespace, ACT)
    assert await ids(kit) == ["2", "1"]


async def test_acts_come_page_by_page_also_while_others_are_noted(kit: Kit) -> None:
    await note(kit, "1", "2", "3", "4", "5")
    first = await kit.broker.acts(kit.queue.namespace, limit=2)
    await note(kit, "6")
    second = await kit.broker.acts(kit.queue.namespace, before=first.before, limit=2)
    third = await kit.broker.acts(kit.queue.namespace, before=second.before, limit=2)

    found = [[act.id for _, act in page.acts] for page in (first, second, third)]
    assert found == [["5", "4"], ["3", "2"], ["1"]]
    assert third.before is None


async def test_acts_of_another_namespace_are_not_told(kit: Kit) -> None:
    await note(kit, "1")

    assert (await kit.broker.acts(f"{kit.queue.namespace}-other")).acts == ()


async def test_the_oldest_go(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kept, redis_acts, memory_acts):
        monkeypatch.setattr(module, "MOST_ACTS", 3)
    await note(kit, "1", "2", "3", "4", "5")

    assert await ids(kit) == ["5", "4", "3"]
    assert await ids(kit, before=5) == ["4", "3"]
    assert await ids(kit, before=1) == []
