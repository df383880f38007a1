"""Exchanges that are sent ahead of work, behind a wait for it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.contract.conftest import LEASE, Kit
from tidework.broker.documents import MARKER
from tidework.errors import StaleRequestError
from tidework.model.job import Job, JobState
from tidework.model.lease import ExchangeReply, ExchangeRequest, Settlement
from tidework.model.outcome import Outcome

LONG, SHORT = timedelta(seconds=20), timedelta(milliseconds=50)


def ahead(sequence: int, want: int = 3, most_held: int = 3) -> ExchangeRequest:
    return ExchangeRequest("w", sequence, want, woken=True, most_held=most_held)


def ids(reply: ExchangeReply | None) -> list[str]:
    assert reply is not None
    return [claimed.id for claimed in reply.claimed]


async def wait(
    kit: Kit, request: ExchangeRequest, timeout: timedelta = LONG
) -> tuple[bytes | None, ExchangeReply | None]:
    await kit.exchange(worker="first")  # a server that does not know the script has no reply
    return await kit.broker.wait_then_exchange(kit.queue, timeout, request)


async def state_of(kit: Kit, name: str) -> JobState:
    found = await kit.broker.get_job(kit.queue, name)
    assert found is not None
    return found.state


async def test_work_that_comes_is_claimed_at_once(kit: Kit) -> None:
    waiting = asyncio.create_task(wait(kit, ahead(1)))
    await kit.until_one_waits()
    await kit.put(Job("a", "t", {}))

    document, reply = await waiting

    assert (document, ids(reply)) == (MARKER, ["a"])
    assert reply is not None
    assert reply.claimed[0].token == "w:1"
    stats = await kit.broker.stats(kit.queue)
    assert (stats.states[JobState.RUNNING], stats.inbox) == (1, 0)


async def test_it_is_made_when_the_time_is_up(kit: Kit) -> None:
    document, reply = await wait(kit, ahead(1), SHORT)

    assert document is None
    assert reply == await kit.broker.exchange(kit.queue, ahead(1))
    assert (await kit.broker.stats(kit.queue)).counters["repeated"] == 1


async def test_a_document_is_moved_and_the_exchange_made(kit: Kit) -> None:
    await kit.put_document(b'{"task": "t"}')

    document, reply = await wait(kit, ahead(1))

    assert (document, ids(reply)) == (b'{"task": "t"}', [])
    assert reply is not None
    assert reply.intake == 1


async def test_its_reply_can_be_asked_for_again(kit: Kit) -> None:
    await kit.put(Job("a", "t", {}), Job("b", "t", {}))
    _, reply = await wait(kit, ahead(1, want=1))

    again = await kit.broker.exchange(kit.queue, ahead(1, want=1))

    assert ids(again) == ids(reply)
    assert len(ids(reply)) == 1


async def test_the_two_kinds_are_numbered_together_and_compared_apart(kit: Kit) -> None:
    await kit.put(*(Job(name, "t", {}) for name in "abcd"))
    loop = ExchangeRequest("w", 2, 1)
    claimed = await kit.broker.exchange(kit.queue, loop)
    late = await kit.broker.exchange(kit.queue, ahead(1, want=1))

    assert (len(ids(claimed)), len(ids(late))) == (1, 1)
    assert ids(await kit.broker.exchange(kit.queue, loop)) == ids(claimed)
    assert ids(await kit.broker.exchange(kit.queue, ahead(1, want=1))) == ids(late)
    await kit.broker.exchange(kit.queue, ahead(4, want=0))
    await kit.broker.exchange(kit.queue, ExchangeRequest("w", 3, 0))
    for old in (ahead(1), ahead(3), loop):
        with pytest.raises(StaleRequestError):
            await kit.broker.exchange(kit.queue, old)
    assert (await kit.broker.stats(kit.queue)).states[JobState.RUNNING] == 2


async def test_what_was_refused_is_not_told_to_the_other_kind(kit: Kit) -> None:
    lost = Settlement("gone", "w:9", Outcome.complete())
    refused = await kit.broker.exchange(kit.queue, ExchangeRequest("w", 1, 0, (lost,)))
    assert refused.refused == ("gone",)
    for _ in range(2):
        assert (await kit.broker.exchange(kit.queue, ahead(2))).refused == ()
    again = await kit.broker.exchange(kit.queue, ExchangeRequest("w", 1, 0, (lost,)))
    assert again.refused == ("gone",)


async def test_no_more_is_claimed_than_there_are_places(kit: Kit) -> None:
    await kit.put(*(Job(name, "t", {}) for name in "abcd"))
    held = await kit.broker.exchange(kit.queue, ExchangeRequest("w", 1, 2))

    one = await kit.broker.exchange(kit.queue, ahead(2))
    none = await kit.broker.exchange(kit.queue, ahead(3))

    assert (len(ids(one)), ids(none), none.backlog) == (1, [], 1)
    assert await kit.broker.wait_for_document(kit.queue, LONG) == MARKER, "others are woken"
    done = tuple(Settlement(c.id, c.token, Outcome.complete()) for c in held.claimed)
    await kit.broker.exchange(kit.queue, ExchangeRequest("w", 4, 0, done))
    assert len(ids(await kit.broker.exchange(kit.queue, ahead(5)))) == 1


async def test_one_that_was_never_made_can_be_closed_without_a_claim(kit: Kit) -> None:
    await kit.put(Job("a", "t", {}))

    assert ids(await kit.broker.exchange(kit.queue, replace(ahead(1), want=0))) == []

    assert ids(await kit.broker.exchange(kit.queue, ahead(1))) == [], "a copy that came late"
    assert await state_of(kit, "a") is JobState.READY


async def test_a_late_answer_leaves_out_what_was_lost(kit: Kit) -> None:
    await kit.put(Job("a", "t", {}))
    await wait(kit, ahead(1))
    await kit.broker.upkeep(kit.queue)
    await kit.let_pass(LEASE / 2)
    await kit.broker.upkeep(kit.queue)
    await kit.let_pass(LEASE)
    assert (await kit.broker.upkeep(kit.queue)).reaped == 1
    assert ids(await kit.exchange(want=1, worker="other")) == ["a"]

    assert ids(await kit.broker.exchange(kit.queue, ahead(1))) == []


async def test_a_cordoned_worker_gets_nothing_that_way(kit: Kit) -> None:
    await kit.broker.drain(kit.queue, 1, ["w"], 1, ttl=LONG)
    await kit.put(Job("a", "t", {}))

    document, reply = await wait(kit, ahead(1))

    assert (document, ids(reply)) == (MARKER, [])
    assert reply is not None
    assert reply.cordoned
    assert await kit.broker.wait_for_document(kit.queue, LONG) == MARKER, "others are woken"


async def test_nor_does_anybody_of_a_paused_queue(kit: Kit) -> None:
    await kit.put(Job("a", "t", {}))
    await kit.broker.pause(kit.queue, "why")

    _, reply = await wait(kit, ahead(1), SHORT)

    assert ids(reply) == []
    assert reply is not None
    assert reply.paused
