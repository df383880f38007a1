"""A paused queue takes jobs in and gives none out; and what clients have to know of a queue."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.conftest import Kit
from tidework.errors import StaleTermError
from tidework.model.durability import Durability
from tidework.model.job import Job, JobState
from tidework.model.lease import Settlement
from tidework.model.outcome import Outcome


async def woken(kit: Kit) -> bool:
    found = await kit.broker.wait_for_document(kit.queue, timedelta(milliseconds=50))
    return found is not None


async def test_nothing_is_claimed_until_it_is_resumed(kit: Kit) -> None:
    assert await kit.broker.pause(kit.queue, "the mail server is down") is True
    assert await kit.broker.pause(kit.queue, "again") is False
    assert await kit.put(Job("a", "t", {})) == (True,)
    reply = await kit.exchange(want=5)
    assert (reply.claimed, reply.paused) == ((), True)
    assert (await kit.broker.gather(kit.queue, horizon=timedelta(0))).paused
    stats = await kit.broker.stats(kit.queue)
    assert stats.pause is not None
    assert stats.pause.reason == "the mail server is down"
    assert await kit.broker.resume(kit.queue) is True
    assert await kit.broker.resume(kit.queue) is False
    assert [found.id for found in (await kit.exchange(want=5)).claimed] == ["a"]
    assert (await kit.broker.stats(kit.queue)).pause is None


async def test_what_runs_goes_on(kit: Kit) -> None:
    await kit.put(Job("a", "t", {}))
    (held,) = (await kit.exchange(want=1)).claimed
    await kit.broker.pause(kit.queue, "")
    reply = await kit.broker.renew(kit.queue, "w1", [(held.id, held.token)])
    assert (reply.lost, reply.paused) == ((), True)
    await kit.exchange(Settlement(held.id, held.token, Outcome.complete()))
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert record.state is JobState.SUCCEEDED


async def test_nobody_is_woken_for_what_may_not_be_claimed(kit: Kit) -> None:
    await kit.broker.pause(kit.queue, "")
    await kit.put(Job("a", "t", {}), Job("b", "t", {}, available_at=kit.now + 0.01))
    await kit.let_pass(timedelta(milliseconds=50))
    await kit.broker.upkeep(kit.queue)
    await kit.exchange(want=1)
    assert not await woken(kit)
    await kit.broker.resume(kit.queue)
    assert await woken(kit)


async def test_a_stale_leader_configures_nothing(kit: Kit) -> None:
    term = await kit.broker.take_term(kit.queue)
    await kit.broker.configure(kit.queue, term, Durability.ASYNC)
    await kit.broker.take_term(kit.queue)
    with pytest.raises(StaleTermError):
        await kit.broker.configure(kit.queue, term, Durability.REPLICA)
