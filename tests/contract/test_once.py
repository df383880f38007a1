"""Blocks that are done once per key: a mark under the job's lease, then done for a time."""

from __future__ import annotations

from datetime import timedelta

from tests.contract.conftest import Kit
from tidework.broker.answers import OnceAnswer
from tidework.model.job import Job
from tidework.model.lease import Lease, QueueLimits, Settlement
from tidework.model.outcome import JobError, Outcome

LONG = timedelta(minutes=5)


async def claim(kit: Kit, *names: str, worker: str = "w1") -> list[Lease]:
    await kit.put(*(Job(name, "t", {}) for name in names))
    claimed = (await kit.exchange(want=len(names), worker=worker)).claimed
    return [Lease(found.id, found.token) for found in claimed]


async def begin(kit: Kit, lease: Lease, key: str = "k") -> OnceAnswer:
    return await kit.broker.once_begin(kit.queue, lease, key)


async def end(kit: Kit, lease: Lease, ttl: timedelta | None = LONG, key: str = "k") -> bool:
    return await kit.broker.once_end(kit.queue, lease, key, ttl=ttl)


async def test_one_does_it_and_the_others_hear_of_it(kit: Kit) -> None:
    first, second = await claim(kit, "a", "b")

    assert await begin(kit, first) is OnceAnswer.FIRST
    assert await begin(kit, first) is OnceAnswer.FIRST, "a reply may be lost"
    assert await begin(kit, second) is OnceAnswer.PENDING
    assert await begin(kit, second, "other") is OnceAnswer.FIRST
    assert await end(kit, first)
    assert await end(kit, first), "a reply may be lost"
    assert await begin(kit, second) is OnceAnswer.DONE
    assert await begin(kit, first) is OnceAnswer.DONE


async def test_a_block_that_failed_may_be_begun_by_anybody(kit: Kit) -> None:
    first, second = await claim(kit, "a", "b")
    await begin(kit, first)

    assert await end(kit, first, None)

    assert await begin(kit, second) is OnceAnswer.FIRST
    assert not await end(kit, first, None), "a late copy"
    assert await begin(kit, first) is OnceAnswer.PENDING


async def test_who_does_not_hold_its_lease_begins_nothing(kit: Kit) -> None:
    (lease,) = await claim(kit, "a")

    assert await begin(kit, Lease("a", "w1:99")) is OnceAnswer.LOST
    assert await begin(kit, Lease("nobody", "w1:1")) is OnceAnswer.LOST
    await kit.exchange(Settlement(*lease, Outcome.complete()))
    assert await begin(kit, lease) is OnceAnswer.LOST


async def test_a_mark_whose_lease_is_gone_is_taken_over(kit: Kit) -> None:
    first, second = await claim(kit, "a", "b")
    await begin(kit, first)
    await kit.exchange(Settlement(*first, Outcome.retry(_error(), timedelta(0))))
    assert await begin(kit, second) is OnceAnswer.FIRST

    assert not await end(kit, first), "its mark is another's by now"

    assert await end(kit, second)


async def test_who_lost_its_lease_after_the_block_may_still_say_so(kit: Kit) -> None:
    (first,) = await claim(kit, "a")
    await begin(kit, first)
    await kit.exchange(Settlement(*first, Outcome.release()))

    assert await end(kit, first)

    (again,) = (await kit.exchange(want=1)).claimed
    assert await begin(kit, Lease(again.id, again.token)) is OnceAnswer.DONE


async def test_done_is_forgotten_after_its_time(kit: Kit) -> None:
    kit.use(QueueLimits(lease=timedelta(minutes=1)))
    first, second = await claim(kit, "a", "b")
    await begin(kit, first)
    await end(kit, first, timedelta(milliseconds=40))
    await begin(kit, second, "stays")
    await kit.let_pass(timedelta(milliseconds=60))

    assert await begin(kit, second) is OnceAnswer.FIRST
    await end(kit, second, timedelta(milliseconds=1))
    await kit.let_pass(timedelta(milliseconds=20))
    await kit.broker.upkeep(kit.queue)

    assert not await end(kit, second), "nothing is left of it"
    assert await begin(kit, first, "stays") is OnceAnswer.PENDING


def _error() -> JobError:
    return JobError("E", "m")
