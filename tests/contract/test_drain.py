"""Cordoning workers before they are taken away."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.conftest import Kit
from tidework.broker.documents import MARKER
from tidework.errors import StaleTermError
from tidework.model.job import Job
from tidework.model.lease import CordonedWorker, Settlement
from tidework.model.outcome import Outcome

TTL = timedelta(seconds=30)


async def drain(kit: Kit, count: int, *workers: str, ttl: timedelta = TTL) -> list[CordonedWorker]:
    return list(await kit.broker.drain(kit.queue, 1, workers, count, ttl=ttl))


async def fill(kit: Kit, count: int) -> None:
    await kit.put(*(Job(f"j{i}", "t", {}) for i in range(count)))


async def test_the_least_busy_are_cordoned_and_claim_nothing(kit: Kit) -> None:
    await fill(kit, 6)
    await kit.exchange(want=2, worker="w1")
    await kit.exchange(want=1, worker="w2")
    assert await drain(kit, 2, "w1", "w2", "w3") == [
        CordonedWorker("w3", 0),
        CordonedWorker("w2", 1),
    ]
    for worker, cordoned in (("w3", True), ("w2", True), ("w1", False)):
        reply = await kit.exchange(want=1, worker=worker)
        assert reply.cordoned is cordoned
        assert len(reply.claimed) == (0 if cordoned else 1)
        renewed = await kit.broker.renew(kit.queue, worker, [])
        assert renewed.cordoned is cordoned


async def test_a_cordoned_worker_settles_what_it_holds(kit: Kit) -> None:
    await fill(kit, 2)
    claimed = (await kit.exchange(want=1, worker="w1")).claimed[0]
    assert await drain(kit, 1, "w1") == [CordonedWorker("w1", 1)]
    done = Settlement(claimed.id, claimed.token, Outcome.complete())
    reply = await kit.exchange(done, want=1, worker="w1")
    assert (reply.refused, reply.claimed, reply.cordoned) == ((), (), True)
    assert await drain(kit, 1, "w1") == [CordonedWorker("w1", 0)]


async def test_who_is_left_out_claims_again_and_is_woken(kit: Kit) -> None:
    await drain(kit, 1, "w1")
    await fill(kit, 1)
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5)) == MARKER
    assert (await kit.exchange(want=1, worker="w1", woken=True)).claimed == ()
    assert await drain(kit, 0, "w1") == []
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5)) == MARKER
    assert len((await kit.exchange(want=1, worker="w1", woken=True)).claimed) == 1


async def test_a_cordon_ends_by_itself(kit: Kit) -> None:
    await fill(kit, 1)
    await drain(kit, 1, "w1", ttl=timedelta(milliseconds=200))
    assert (await kit.exchange(want=1, worker="w1")).cordoned
    await kit.let_pass(timedelta(milliseconds=300))
    assert len((await kit.exchange(want=1, worker="w1")).claimed) == 1


async def test_who_is_cordoned_stays_first_among_equals(kit: Kit) -> None:
    assert await drain(kit, 1, "w2") == [CordonedWorker("w2", 0)]
    assert await drain(kit, 1, "w1", "w2", "w3") == [CordonedWorker("w2", 0)]


async def test_a_stale_leader_cordons_nobody(kit: Kit) -> None:
    await kit.broker.take_term(kit.queue)
    await kit.broker.take_term(kit.queue)
    with pytest.raises(StaleTermError):
        await drain(kit, 1, "w1")
    assert not (await kit.broker.renew(kit.queue, "w1", [])).cordoned
