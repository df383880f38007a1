"""The reply of a request is lost, and its caller repeats it: as if it had been called once."""

from __future__ import annotations

import pytest

from tests.integration.broker.conftest import on_both
from tests.integration.broker.queue_dump import differences
from tests.integration.broker.request_table import ROWS
from tests.integration.broker.rig import Rig, Row
from tests.support.proxy import Fate, script_names
from tidework.broker.scripts import load_script
from tidework.errors import BrokerUnavailableError


def test_every_script_that_writes_has_a_row() -> None:
    writing = {name for name in script_names().values() if not _is_read_out(name)}

    assert {row.script for row in ROWS} == writing


def _is_read_out(name: str) -> bool:
    return "no-writes" in load_script(name).text.partition("\n")[0]


def test_titles_tell_the_rows_apart() -> None:
    assert len({str(row) for row in ROWS}) == len(ROWS)


@on_both
@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_lost_reply(rig: Rig, row: Row) -> None:
    await rig.fill()
    await row.before(rig)
    before = await rig.dump()
    caught = rig.proxy.catch(row.script, Fate.LOSE_REPLY)
    with pytest.raises(BrokerUnavailableError):
        await row.call(rig, rig.through)
    assert caught.answered.is_set()
    once = await rig.dump()
    assert row.unseen or differences(before, once), "the row shows nothing"

    await row.call(rig, rig.through)

    assert differences(once, await rig.dump(), row.skips) == {}


@pytest.mark.parametrize("row", [row for row in ROWS if row.alike is not None], ids=str)
async def test_a_repetition_is_answered_alike(rig: Rig, row: Row) -> None:
    assert row.alike is not None
    await rig.fill()
    await row.before(rig)

    first = row.alike(await row.call(rig, rig.through))

    assert row.alike(await row.call(rig, rig.broker)) == first


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_forgotten_script(rig: Rig, row: Row) -> None:
    """The server forgets all scripts before every request: each does its work all the same."""

    async def forget(_: str) -> None:
        rig.client.script_flush()

    await rig.fill()
    await row.before(rig)
    before = await rig.dump()
    rig.proxy.before_each = forget
    await row.call(rig, rig.through)
    once = await rig.dump()
    assert row.unseen or differences(before, once), "it did nothing"
    assert rig.proxy.seen[row.script] == 2, "by its SHA, then as text"

    await row.call(rig, rig.broker)

    assert differences(once, await rig.dump(), row.skips) == {}
