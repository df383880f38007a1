"""How each delivery of a job ended, when, on whose worker and why."""

from __future__ import annotations

from datetime import timedelta

from tests.contract.conftest import LEASE, Kit
from tests.contract.test_jobs import claim_one, end, job
from tidework.broker.history import MOST_LINES
from tidework.model.backlog import Delivery, DeliveryEnd
from tidework.model.outcome import JobError, Outcome

BOOM = JobError("ValueError", "no\taddress\nat all", cause="exception")


async def history_of(kit: Kit, job_id: str = "a") -> tuple[Delivery, ...]:
    record = await kit.broker.get_job(kit.queue, job_id)
    assert record is not None
    return record.history


def told(found: tuple[Delivery, ...]) -> list[tuple[int, str, str, str]]:
    return [(each.attempt, each.end.value, each.worker, each.cause) for each in found]


async def test_a_job_that_waits_has_no_history(kit: Kit) -> None:
    await kit.put(job("a"))

    assert await history_of(kit) == ()


async def test_a_job_that_runs_and_succeeds_says_where(kit: Kit) -> None:
    await kit.put(job("a"), job("b"))
    a = await claim_one(kit)
    b = await claim_one(kit, worker="w2")

    (running,) = await history_of(kit)
    assert (running.end, running.worker, running.ended_at) == (DeliveryEnd.RUNNING, "w1", None)

    await kit.exchange(end(a, Outcome.complete()))
    await kit.exchange(end(b, Outcome.complete(b"7")), worker="w2")
    assert told(await history_of(kit)) == [(1, "complete", "w1", "")]
    (ended,) = await history_of(kit, "b")
    assert told((ended,)) == [(1, "complete", "w2", "")]
    assert ended.ended_at is not None
    assert ended.ended_at >= ended.claimed_at


async def test_each_end_of_a_delivery_is_kept_with_its_cause(kit: Kit) -> None:
    await kit.put(job("a"))
    ways = [
        Outcome.retry(BOOM, timedelta(0)),
        Outcome.release(reason="the worker drains"),
        Outcome.loss(JobError("WorkerLost", "signal 11", cause="signal")),
    ]
    for number, outcome in enumerate(ways):
        claimed = await claim_one(kit, worker=f"w{number}")
        await kit.exchange(end(claimed, outcome), worker=f"w{number}")
    await kit.let_pass(LEASE)  # the pause after a loss
    claimed = await claim_one(kit, worker="w9")
    await kit.exchange(end(claimed, Outcome.complete()), worker="w9")

    assert told(await history_of(kit)) == [
        (1, "retry", "w0", "exception: ValueError: no address at all"),
        (2, "release", "w1", "the worker drains"),
        (2, "loss", "w2", "signal: WorkerLost: signal 11"),
        (2, "complete", "w9", ""),
    ]


async def test_a_lease_that_ran_out_and_a_burial_are_told(kit: Kit) -> None:
    await kit.put(job("a"))
    await claim_one(kit)
    await kit.let_pass(LEASE * 1.5)
    assert (await kit.broker.upkeep(kit.queue)).reaped == 1
    claimed = await claim_one(kit, worker="w2")
    await kit.exchange(end(claimed, Outcome.bury(BOOM)), worker="w2")

    assert told(await history_of(kit)) == [
        (1, "expired", "w1", "the lease expired"),
        (1, "bury", "w2", "exception: ValueError: no address at all"),
    ]


async def test_a_replayed_job_keeps_what_was_before(kit: Kit) -> None:
    await kit.put(job("a"))
    await kit.exchange(end(await claim_one(kit), Outcome.bury(BOOM)))
    await kit.broker.replay(kit.queue, ["a"])
    await claim_one(kit)

    assert [each.end for each in await history_of(kit)] == [DeliveryEnd.BURY, DeliveryEnd.RUNNING]


async def test_a_cancelled_run_is_told(kit: Kit) -> None:
    await kit.put(job("a"))
    claimed = await claim_one(kit)
    await kit.broker.cancel(kit.queue, "a")
    await kit.exchange(end(claimed, Outcome.retry(BOOM, timedelta(0))))

    assert [each.end for each in await history_of(kit)] == [DeliveryEnd.CANCELLED]


async def test_the_newest_deliveries_are_kept(kit: Kit) -> None:
    await kit.put(job("a"))
    for number in range(MOST_LINES + 3):
        claimed = await claim_one(kit)
        await kit.exchange(end(claimed, Outcome.retry(JobError("E", str(number)), timedelta(0))))

    found = await history_of(kit)
    assert [each.cause for each in found] == [
        f"exception: E: {number}" for number in range(3, MOST_LINES + 3)
    ]


async def test_it_goes_with_the_job(kit: Kit) -> None:
    await kit.put(job("a"))
    await kit.exchange(end(await claim_one(kit), Outcome.bury(BOOM)))
    await kit.broker.purge(kit.queue, ["a"])

    # What it leaves behind would be a leak: the fixture `no_leaks` looks.
    assert await kit.broker.get_job(kit.queue, "a") is None
