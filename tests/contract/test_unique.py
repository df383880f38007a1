"""Unique keys: who holds one, what becomes of the others, and when it is free again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.conftest import LEASE, Kit
from tidework.broker.answers import ReplayAnswer
from tidework.broker.documents import AcceptedDocument
from tidework.errors import UniqueConflictError
from tidework.model.job import Enqueued, Job, JobState
from tidework.model.lease import ClaimedJob, Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.model.unique import OnConflict, Unique, UniqueUntil

ERROR = JobError("ValueError", "no")


def job(name: str, key: str | Unique = "k", **fields: object) -> Job:
    unique = Unique(key) if isinstance(key, str) else key
    return Job(name, "t", {}, unique=unique, **fields)  # type: ignore[arg-type]


def replacing(key: str = "k") -> Unique:
    return Unique(key, on_conflict=OnConflict.REPLACE)


def strict(key: str = "k") -> Unique:
    return Unique(key, on_conflict=OnConflict.ERROR)


async def enqueue(kit: Kit, *jobs: Job) -> tuple[Enqueued, ...]:
    return await kit.broker.enqueue(kit.queue, jobs)


async def state_of(kit: Kit, name: str) -> JobState | None:
    record = await kit.broker.get_job(kit.queue, name)
    return None if record is None else record.state


async def claim(kit: Kit, count: int = 1) -> tuple[ClaimedJob, ...]:
    return (await kit.exchange(want=count)).claimed


async def end(kit: Kit, held: ClaimedJob, outcome: Outcome) -> None:
    reply = await kit.exchange(Settlement(held.id, held.token, outcome))
    assert reply.refused == ()


async def test_the_second_job_of_a_key_is_skipped_and_told_the_holder(kit: Kit) -> None:
    assert await enqueue(kit, job("a"), job("b")) == (Enqueued("a", True), Enqueued("a", False))
    assert await enqueue(kit, job("c"), job("d", "other")) == (
        Enqueued("a", False),
        Enqueued("d", True),
    )
    assert await state_of(kit, "b") is None
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert record.unique == "k"


async def test_the_holder_enqueued_again_is_known_and_no_conflict(kit: Kit) -> None:
    await enqueue(kit, job("a", strict()))
    assert await enqueue(kit, job("a", strict())) == (Enqueued("a", False),)
    assert await enqueue(kit, job("a", replacing())) == (Enqueued("a", False),)
    assert await state_of(kit, "a") is JobState.READY


async def test_the_key_is_held_through_all_attempts_and_free_at_the_end(kit: Kit) -> None:
    await enqueue(kit, job("a"))
    (held,) = await claim(kit)
    assert await enqueue(kit, job("b")) == (Enqueued("a", False),)
    await end(kit, held, Outcome.retry(ERROR, timedelta(0)))
    assert await enqueue(kit, job("b")) == (Enqueued("a", False),)
    (held,) = await claim(kit)
    await end(kit, held, Outcome.complete())
    assert await enqueue(kit, job("b")) == (Enqueued("b", True),)


@pytest.mark.parametrize("ending", ["bury", "cancel", "poison"])
async def test_every_end_frees_the_key(kit: Kit, ending: str) -> None:
    await enqueue(kit, job("a"))
    if ending == "cancel":
        await kit.broker.cancel(kit.queue, "a")
    for _ in range({"bury": 1, "poison": 3}.get(ending, 0)):
        (held,) = await claim(kit)
        await end(kit, held, Outcome.bury(ERROR) if ending == "bury" else Outcome.loss(ERROR))
        await kit.let_pass(LEASE * 1.1)  # the longest pause after a loss here
    assert await enqueue(kit, job("b")) == (Enqueued("b", True),)


async def test_until_start_the_key_is_free_once_claimed(kit: Kit) -> None:
    unique = Unique("k", until=UniqueUntil.START)
    await enqueue(kit, job("a", unique))
    assert await enqueue(kit, job("b", unique)) == (Enqueued("a", False),)
    (held,) = await claim(kit)
    assert await enqueue(kit, job("b", unique)) == (Enqueued("b", True),)
    await end(kit, held, Outcome.complete())
    assert await enqueue(kit, job("c", unique)) == (Enqueued("b", False),)


async def test_with_a_ttl_the_key_is_held_for_that_time(kit: Kit) -> None:
    unique = Unique("k", until=UniqueUntil.TTL, ttl=0.5)
    await enqueue(kit, job("a", unique))
    (held,) = await claim(kit)
    await end(kit, held, Outcome.complete())
    assert await enqueue(kit, job("b", unique)) == (Enqueued("a", False),)
    await kit.let_pass(timedelta(milliseconds=600))
    assert await enqueue(kit, job("b", unique)) == (Enqueued("b", True),)


async def test_upkeep_forgets_keys_whose_time_is_over_and_no_others(kit: Kit) -> None:
    await enqueue(kit, job("a", Unique("k", until=UniqueUntil.TTL, ttl=0.2)), job("b", "kept"))
    await kit.let_pass(timedelta(milliseconds=300))
    # Taken again, now without a time: upkeep has to let it be.
    await enqueue(kit, job("c", "k"))
    await kit.broker.upkeep(kit.queue)
    assert await enqueue(kit, job("d", "k"), job("e", "kept")) == (
        Enqueued("c", False),
        Enqueued("b", False),
    )


async def test_an_error_is_raised_and_nothing_of_the_call_is_enqueued(kit: Kit) -> None:
    await enqueue(kit, job("a"))
    with pytest.raises(UniqueConflictError) as caught:
        await enqueue(kit, Job("plain", "t", {}), job("b", strict()))
    assert (caught.value.key, caught.value.holder) == ("k", "a")
    assert await state_of(kit, "plain") is None
    with pytest.raises(UniqueConflictError) as caught:
        await enqueue(kit, job("x", "new"), job("y", strict("new")))
    assert caught.value.holder == "x"
    assert await state_of(kit, "x") is None


async def test_a_waiting_holder_is_replaced_at_once(kit: Kit) -> None:
    await enqueue(kit, job("a", replacing()))
    assert await enqueue(kit, job("b", replacing())) == (Enqueued("b", True),)
    assert await state_of(kit, "a") is JobState.CANCELLED
    assert await state_of(kit, "b") is JobState.READY
    assert await enqueue(kit, job("c")) == (Enqueued("b", False),)


@pytest.mark.parametrize("ending", ["complete", "retry", "cancelled", "reap"])
async def test_a_running_holder_is_stopped_before_its_replacement_runs(
    kit: Kit, ending: str
) -> None:
    await enqueue(kit, job("a"))
    (held,) = await claim(kit)
    assert await enqueue(kit, job("b", replacing())) == (Enqueued("b", True),)
    assert (await kit.broker.renew(kit.queue, "w1", [(held.id, held.token)])).cancel == ("a",)
    assert await claim(kit, 5) == ()
    if ending == "reap":
        await kit.let_pass(timedelta(milliseconds=500))
        await kit.broker.upkeep(kit.queue)
    else:
        outcome = {
            "complete": Outcome.complete(),
            "retry": Outcome.retry(ERROR, timedelta(0)),
            "cancelled": Outcome.cancelled(),
        }[ending]
        await end(kit, held, outcome)
    assert [found.id for found in await claim(kit, 5)] == ["b"]


async def test_whoever_replaces_a_held_job_waits_in_its_place(kit: Kit) -> None:
    await enqueue(kit, job("a"))
    (held,) = await claim(kit)
    await enqueue(kit, job("b", replacing()))
    await enqueue(kit, job("c", replacing()))
    assert await state_of(kit, "b") is JobState.CANCELLED
    assert await claim(kit, 5) == ()
    await end(kit, held, Outcome.cancelled())
    assert [found.id for found in await claim(kit, 5)] == ["c"]


async def test_a_replacement_keeps_its_own_due_time(kit: Kit) -> None:
    await enqueue(kit, job("a"))
    (held,) = await claim(kit)
    await enqueue(kit, job("b", replacing(), available_at=kit.now + 60))
    await end(kit, held, Outcome.cancelled())
    assert await state_of(kit, "b") is JobState.SCHEDULED
    assert await claim(kit, 5) == ()


async def test_a_cancelled_replacement_leaves_no_trace(kit: Kit) -> None:
    await enqueue(kit, job("a"))
    (held,) = await claim(kit)
    await enqueue(kit, job("b", replacing()))
    await kit.broker.cancel(kit.queue, "b")
    await end(kit, held, Outcome.cancelled())
    assert await claim(kit, 5) == ()
    assert await enqueue(kit, job("c")) == (Enqueued("c", True),)


async def test_a_replayed_job_takes_its_key_again_or_stays_dead(kit: Kit) -> None:
    await enqueue(kit, job("a"))
    (held,) = await claim(kit)
    await end(kit, held, Outcome.bury(ERROR))
    await enqueue(kit, job("b"))
    assert await kit.broker.replay(kit.queue, ["a"]) == (ReplayAnswer.UNIQUE,)
    assert await state_of(kit, "a") is JobState.DEAD
    await kit.broker.cancel(kit.queue, "b")
    assert await kit.broker.replay(kit.queue, ["a"]) == (ReplayAnswer.REPLAYED,)
    assert await enqueue(kit, job("c")) == (Enqueued("a", False),)


@pytest.mark.parametrize("on_conflict", [OnConflict.SKIP, OnConflict.ERROR])
async def test_a_document_whose_key_is_held(kit: Kit, on_conflict: OnConflict) -> None:
    await enqueue(kit, job("a"))
    found = job("b", Unique("k", on_conflict=on_conflict))
    await kit.put_document(found.encode())
    raw = await kit.broker.wait_for_document(kit.queue, timedelta(seconds=1))
    while raw == b"!":
        raw = await kit.broker.wait_for_document(kit.queue, timedelta(seconds=1))
    assert raw == found.encode()
    await kit.broker.intake(kit.queue, [AcceptedDocument(raw, found, raw, named=True)], [])
    record = await kit.broker.get_job(kit.queue, "b")
    if on_conflict is OnConflict.SKIP:
        assert record is None
    else:
        assert record is not None
        assert record.error is not None
        assert (record.state, record.error.cause) == (JobState.DEAD, "unique")
        assert "held by job a" in record.error.message
    stats = await kit.broker.stats(kit.queue)
    assert stats.inbox == 0
    assert stats.counters["deduplicated"] == 1
