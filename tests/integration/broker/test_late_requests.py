"""A copy of a request arrives once more, at once or after newer ones: as if called once."""

from __future__ import annotations

import pytest

from tests.integration.broker.conftest import on_both
from tests.integration.broker.queue_dump import differences
from tests.integration.broker.request_table import ROWS
from tests.integration.broker.rig import Rig, Row
from tests.support.proxy import Fate
from tidework.errors import BrokerUnavailableError


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_request_that_arrives_twice(rig: Rig, row: Row) -> None:
    await rig.fill()
    await row.before(rig)
    caught = rig.proxy.catch(row.script)
    await row.call(rig, rig.through)
    once = await rig.dump()

    await arrive(rig, caught.request)

    assert differences(once, await rig.dump(), row.skips) == {}


@on_both
@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_request_that_arrives_after_its_repetition_and_newer_ones(
    rig: Rig, row: Row
) -> None:
    await rig.fill()
    await row.before(rig)
    caught = rig.proxy.catch(row.script, Fate.LOSE_REQUEST)
    with pytest.raises(BrokerUnavailableError):
        await row.call(rig, rig.through)
    await row.call(rig, rig.through)
    await row.newer(rig)
    once = await rig.dump()

    await arrive(rig, caught.request)
    await row.heal(rig)

    assert differences(once, await rig.dump(), row.skips) == {}


async def arrive(rig: Rig, request: bytes) -> None:
    reply = await rig.proxy.send(request)
    assert not reply.startswith(b"-"), reply
