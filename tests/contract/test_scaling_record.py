"""What an autoscaler decided stays readable: the latest, and the last that changed something."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Kit
from tidework.errors import StaleTermError
from tidework.model.scaled import MOST_KEPT, Scaled, ScalingRecord


def scaled(before: int, replicas: int, reason: str = "12 waiting") -> Scaled:
    return Scaled(before, replicas, replicas, reason, ("maxReplicas",), 12, 3)


async def test_nothing_is_known_of_a_queue_that_nobody_scales(kit: Kit) -> None:
    assert await kit.broker.scaling(kit.queue) == ScalingRecord()


async def test_the_latest_is_kept_and_steps_stay_newest_first(kit: Kit) -> None:
    term = await kit.broker.take_term(kit.queue)
    first, second, third = scaled(0, 3), scaled(3, 5), scaled(5, 5, "quatre à faire")
    await kit.broker.note_scaling(kit.queue, term, first, is_step=True)
    await kit.broker.note_scaling(kit.queue, term, second, is_step=True)
    await kit.broker.note_scaling(kit.queue, term, third, is_step=False)

    found = await kit.broker.scaling(kit.queue)

    assert found.latest is not None
    assert found.latest.scaled == third
    assert [each.scaled for each in found.steps] == [second, first]
    assert found.steps[1].at <= found.latest.at


async def test_what_was_said_last_is_not_said_again(kit: Kit) -> None:
    term = await kit.broker.take_term(kit.queue)
    for _ in range(2):
        await kit.broker.note_scaling(kit.queue, term, scaled(0, 3), is_step=True)

    assert len((await kit.broker.scaling(kit.queue)).steps) == 1


async def test_steps_are_bounded(kit: Kit) -> None:
    term = await kit.broker.take_term(kit.queue)
    for number in range(MOST_KEPT + 5):
        await kit.broker.note_scaling(kit.queue, term, scaled(number, number + 1), is_step=True)

    steps = (await kit.broker.scaling(kit.queue)).steps

    assert len(steps) == MOST_KEPT
    assert steps[0].scaled.before == MOST_KEPT + 4


async def test_a_leader_of_before_writes_nothing(kit: Kit) -> None:
    old = await kit.broker.take_term(kit.queue)
    await kit.broker.take_term(kit.queue)

    with pytest.raises(StaleTermError):
        await kit.broker.note_scaling(kit.queue, old, scaled(0, 1), is_step=True)

    assert await kit.broker.scaling(kit.queue) == ScalingRecord()
