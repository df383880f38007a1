"""A job's way through its states."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.contract.conftest import LEASE, Kit
from tidework.broker.documents import MARKER
from tidework.errors import StaleRequestError
from tidework.model.job import Job, JobState
from tidework.model.lease import ClaimedJob, QueueLimits, RunTimes, Settlement
from tidework.model.outcome import JobError, Outcome

BOOM = JobError("ValueError", "boom")


def job(name: str, *, priority: int = 5, available_at: float | None = None) -> Job:
    return Job(
        id=name, task="send", params={"to": name}, priority=priority, available_at=available_at
    )


def end(claimed: ClaimedJob, outcome: Outcome) -> Settlement:
    return Settlement(claimed.id, claimed.token, outcome)


async def claim_one(kit: Kit, *, worker: str = "w1") -> ClaimedJob:
    reply = await kit.exchange(want=1, worker=worker)
    assert len(reply.claimed) == 1
    return reply.claimed[0]


async def state_of(kit: Kit, job_id: str) -> JobState | None:
    record = await kit.broker.get_job(kit.queue, job_id)
    return None if record is None else record.state


async def test_a_job_is_enqueued_claimed_and_succeeds(kit: Kit) -> None:
    assert await kit.put(job("a")) == (True,)
    assert await state_of(kit, "a") is JobState.READY

    claimed = await claim_one(kit)
    assert (claimed.id, claimed.attempt, claimed.deliveries) == ("a", 1, 1)
    assert claimed.body == job("a").encode()
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert (record.state, record.worker, record.attempt) == (JobState.RUNNING, "w1", 1)

    reply = await kit.exchange(end(claimed, Outcome.complete(b'{"sent":1}')))
    assert reply.refused == ()
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert (record.state, record.result, record.worker) == (JobState.SUCCEEDED, {"sent": 1}, "w1")
    stats = await kit.broker.stats(kit.queue)
    assert stats.states[JobState.SUCCEEDED] == 1
    assert stats.unfinished == 0
    assert stats.counters["enqueued"] == stats.counters["claimed"] == 1


async def test_enqueue_is_idempotent_by_id_even_after_the_end(kit: Kit) -> None:
    assert await kit.put(job("a"), job("a"), job("b")) == (True, False, True)
    claimed = await claim_one(kit)
    await kit.exchange(end(claimed, Outcome.complete()))
    assert await kit.put(job(claimed.id)) == (False,)
    assert await state_of(kit, claimed.id) is JobState.SUCCEEDED


async def test_claims_are_in_order_of_priority_then_time(kit: Kit) -> None:
    now = kit.now
    await kit.put(
        job("late", available_at=now - 1),
        job("early", available_at=now - 2),
        job("urgent", priority=0),
        job("idle", priority=9, available_at=now - 9),
    )
    reply = await kit.exchange(want=10)
    assert [claimed.id for claimed in reply.claimed] == ["urgent", "early", "late", "idle"]


async def test_every_tenth_claim_takes_the_oldest(kit: Kit) -> None:
    now = kit.now
    await kit.put(*(job(f"u{i:02}", priority=0, available_at=now - 1 + i / 100) for i in range(20)))
    await kit.put(job("starved", priority=9, available_at=now - 60))
    first = [c.id for c in (await kit.exchange(want=4)).claimed]
    rest = [c.id for c in (await kit.exchange(want=17)).claimed]
    order = first + rest
    assert order.index("starved") == 9
    assert [name for name in order if name != "starved"] == [f"u{i:02}" for i in range(20)]


async def test_a_scheduled_job_waits_and_is_promoted(kit: Kit) -> None:
    await kit.put(job("later", available_at=kit.now + 0.4))
    reply = await kit.exchange(want=5)
    assert reply.claimed == ()
    assert reply.next_due is not None
    assert timedelta(0) < reply.next_due <= timedelta(seconds=0.5)
    assert await state_of(kit, "later") is JobState.SCHEDULED
    await kit.let_pass(timedelta(seconds=0.5))
    assert [c.id for c in (await kit.exchange(want=5)).claimed] == ["later"]


async def test_upkeep_promotes_without_any_worker(kit: Kit) -> None:
    await kit.put(job("later", available_at=kit.now + 0.2, priority=2))
    assert (await kit.broker.upkeep(kit.queue)).promoted == 0
    await kit.let_pass(timedelta(seconds=0.3))
    assert (await kit.broker.upkeep(kit.queue)).promoted == 1
    record = await kit.broker.get_job(kit.queue, "later")
    assert record is not None
    assert (record.state, record.priority) == (JobState.READY, 2)


async def test_a_failed_attempt_waits_for_its_delay_and_counts(kit: Kit) -> None:
    await kit.put(job("a"))
    claimed = await claim_one(kit)
    delay = timedelta(milliseconds=200)
    await kit.exchange(end(claimed, Outcome.retry(BOOM, delay)))
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert (record.state, record.attempt, record.error) == (JobState.SCHEDULED, 1, BOOM)
    await kit.let_pass(delay + timedelta(milliseconds=100))
    again = await claim_one(kit)
    assert (again.attempt, again.deliveries, again.losses) == (2, 2, 0)
    await kit.exchange(end(again, Outcome.complete()))
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert (record.state, record.result, record.error) == (JobState.SUCCEEDED, None, None)


async def test_a_buried_job_is_a_dead_letter_with_its_error(kit: Kit) -> None:
    await kit.put(job("a"))
    await kit.exchange(end(await claim_one(kit), Outcome.bury(BOOM)))
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert (record.state, record.error) == (JobState.DEAD, BOOM)
    page = await kit.broker.list_jobs(kit.queue, JobState.DEAD)
    assert (page.ids, page.cursor) == (("a",), None)


async def test_a_released_job_is_ready_again_and_uncounted(kit: Kit) -> None:
    await kit.put(job("a", available_at=kit.now - 5), job("b"))
    await kit.exchange(end(await claim_one(kit), Outcome.release()))
    again = await claim_one(kit)
    assert (again.id, again.attempt, again.deliveries, again.releases) == ("a", 1, 2, 1)


async def test_releases_are_capped(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, release_cap=2))
    await kit.put(job("a"))
    for _ in range(2):
        await kit.exchange(end(await claim_one(kit), Outcome.release()))
    await kit.exchange(end(await claim_one(kit), Outcome.release()))
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert (record.state, record.attempt, record.releases) == (JobState.SCHEDULED, 1, 3)


async def test_an_expired_lease_is_a_loss_and_the_job_runs_again(kit: Kit) -> None:
    await kit.put(job("a"))
    stale = await claim_one(kit, worker="w1")
    await kit.let_pass(LEASE * 1.5)
    assert (await kit.broker.upkeep(kit.queue)).reaped == 1
    again = await claim_one(kit, worker="w2")
    assert (again.attempt, again.deliveries, again.losses) == (1, 2, 1)
    refused = await kit.exchange(end(stale, Outcome.complete(b"1")), worker="w1")
    assert refused.refused == ("a",)
    assert await state_of(kit, "a") is JobState.RUNNING
    assert (await kit.broker.stats(kit.queue)).counters["lease_lost"] == 1
    assert (await kit.exchange(end(again, Outcome.complete()), worker="w2")).refused == ()


async def test_an_exchange_reaps_too(kit: Kit) -> None:
    await kit.put(job("a"))
    await claim_one(kit, worker="w1")
    await kit.let_pass(LEASE * 1.5)
    assert [c.id for c in (await kit.exchange(want=1, worker="w2")).claimed] == ["a"]


async def test_a_renewed_lease_is_not_reaped(kit: Kit) -> None:
    await kit.put(job("a"))
    claimed = await claim_one(kit)
    for _ in range(4):
        await kit.let_pass(LEASE * 0.6)
        reply = await kit.broker.renew(kit.queue, "w1", [(claimed.id, claimed.token)])
        assert (reply.lost, reply.cancel) == ((), ())
        assert (await kit.broker.upkeep(kit.queue)).reaped == 0
    lost = await kit.broker.renew(kit.queue, "w1", [(claimed.id, "w1:99"), ("nobody", "w1:1")])
    assert lost.lost == ("a", "nobody")


async def test_settling_with_an_expired_lease_that_nobody_reaped_is_accepted(kit: Kit) -> None:
    await kit.put(job("a"))
    claimed = await claim_one(kit)
    await kit.let_pass(LEASE * 1.5)
    assert (await kit.exchange(end(claimed, Outcome.complete()))).refused == ()
    assert await state_of(kit, "a") is JobState.SUCCEEDED


async def test_a_resent_exchange_gets_the_same_reply_and_acts_once(kit: Kit) -> None:
    await kit.put(job("a"), job("b"), job("c"))
    first = await kit.exchange(want=2, sequence=1)
    again = await kit.exchange(want=2, sequence=1)
    assert again.claimed == first.claimed
    assert len(first.claimed) == 2
    settled = await kit.exchange(end(first.claimed[0], Outcome.complete()), want=1, sequence=2)
    resent = await kit.exchange(end(first.claimed[0], Outcome.complete()), want=1, sequence=2)
    assert resent.refused == settled.refused == ()
    assert resent.claimed == settled.claimed
    stats = await kit.broker.stats(kit.queue)
    assert (stats.states[JobState.RUNNING], stats.states[JobState.SUCCEEDED]) == (2, 1)
    assert stats.counters["succeeded"] == 1


async def test_a_resent_exchange_gets_whole_leases(kit: Kit) -> None:
    await kit.put(job("a"))
    await kit.exchange(want=1, sequence=1)
    await kit.let_pass(LEASE * 0.8)
    assert len((await kit.exchange(want=1, sequence=1)).claimed) == 1
    await kit.let_pass(LEASE * 0.3)
    assert (await kit.broker.upkeep(kit.queue)).reaped == 0
    assert await state_of(kit, "a") is JobState.RUNNING


async def test_a_late_request_is_refused(kit: Kit) -> None:
    await kit.put(job("a"), job("b"))
    await kit.exchange(want=1, sequence=7)
    with pytest.raises(StaleRequestError):
        await kit.exchange(want=1, sequence=6)
    stats = await kit.broker.stats(kit.queue)
    assert stats.states[JobState.RUNNING] == 1
    assert stats.counters["stale_requests"] == 1


async def test_a_waiting_job_is_cancelled_at_once(kit: Kit) -> None:
    await kit.put(job("a"), job("b", available_at=kit.now + 60))
    assert await kit.broker.cancel(kit.queue, "a") == "cancelled"
    assert await kit.broker.cancel(kit.queue, "b") == "cancelled"
    assert await kit.broker.cancel(kit.queue, "b") == "finished"
    assert await kit.broker.cancel(kit.queue, "nobody") == "unknown"
    assert (await kit.exchange(want=5)).claimed == ()
    assert await state_of(kit, "a") is JobState.CANCELLED


@pytest.mark.parametrize(
    "outcome",
    [Outcome.retry(BOOM, timedelta(0)), Outcome.release(), Outcome.loss(BOOM), Outcome.cancelled()],
)
async def test_a_running_job_is_cancelled_when_it_comes_back(kit: Kit, outcome: Outcome) -> None:
    await kit.put(job("a"))
    claimed = await claim_one(kit)
    assert await kit.broker.cancel(kit.queue, "a") == "requested"
    reply = await kit.broker.renew(kit.queue, "w1", [(claimed.id, claimed.token)])
    assert reply.cancel == ("a",)
    await kit.exchange(end(claimed, outcome))
    assert await state_of(kit, "a") is JobState.CANCELLED


async def test_a_cancelled_job_whose_worker_died_is_cancelled_by_the_reaper(kit: Kit) -> None:
    await kit.put(job("a"))
    await claim_one(kit)
    await kit.broker.cancel(kit.queue, "a")
    await kit.let_pass(LEASE * 1.5)
    await kit.broker.upkeep(kit.queue)
    assert await state_of(kit, "a") is JobState.CANCELLED


async def test_retention_by_number_leaves_a_tombstone(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, keep_count=2))
    for name in "abcd":
        await kit.put(job(name))
        await kit.exchange(end(await claim_one(kit), Outcome.complete(b"1")))
        await kit.let_pass(timedelta(milliseconds=5))
    await kit.broker.upkeep(kit.queue)
    assert [await state_of(kit, name) for name in "ab"] == [None, None]
    forgotten = [await kit.broker.forgotten_at(kit.queue, name) for name in ("a", "d", "other")]
    assert forgotten[0] is not None
    assert abs(forgotten[0].timestamp() - kit.now) < 60
    assert forgotten[1:] == [None, None]
    page = await kit.broker.list_jobs(kit.queue, JobState.SUCCEEDED)
    assert page.ids == ("d", "c")
    assert await kit.put(job("a")) == (False,)


async def test_retention_by_time(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, keep_succeeded=timedelta(milliseconds=300)))
    await kit.put(job("a"), job("b"))
    first = await claim_one(kit)
    second = await claim_one(kit)
    await kit.exchange(end(first, Outcome.complete()), end(second, Outcome.bury(BOOM)))
    await kit.broker.upkeep(kit.queue)
    assert await state_of(kit, "a") is JobState.SUCCEEDED
    await kit.let_pass(timedelta(milliseconds=400))
    assert (await kit.broker.upkeep(kit.queue)).pruned == 1
    assert await state_of(kit, "a") is None
    assert await state_of(kit, "b") is JobState.DEAD


async def test_pages_of_ids(kit: Kit) -> None:
    await kit.put(*(job(f"j{i}", available_at=kit.now - 10 + i) for i in range(5)))
    first = await kit.broker.list_jobs(kit.queue, JobState.READY, limit=2)
    second = await kit.broker.list_jobs(kit.queue, JobState.READY, cursor=first.cursor, limit=2)
    third = await kit.broker.list_jobs(kit.queue, JobState.READY, cursor=second.cursor, limit=2)
    assert first.ids + second.ids + third.ids == ("j0", "j1", "j2", "j3", "j4")
    assert third.cursor is None


async def test_a_worker_that_waits_is_woken_by_an_enqueue(kit: Kit) -> None:
    waiting = asyncio.create_task(kit.broker.wait_for_document(kit.queue, timedelta(seconds=20)))
    await kit.until_one_waits()
    await kit.put(job("a"))
    assert await waiting == MARKER
    reply = await kit.exchange(want=1, woken=True)
    assert (len(reply.claimed), reply.intake) == (1, 0)
    assert await kit.broker.stranded(kit.queue, 10) == ()


async def test_nothing_wakes_a_worker_while_there_is_nothing_to_do(kit: Kit) -> None:
    await kit.put(job("later", available_at=kit.now + 60))
    short = timedelta(milliseconds=100)
    assert await kit.broker.wait_for_document(kit.queue, short) == MARKER
    reply = await kit.exchange(want=1, woken=True)
    assert reply.next_due is not None
    await kit.put(job("much-later", available_at=kit.now + 90))
    assert await kit.broker.wait_for_document(kit.queue, short) is None
    await kit.put(job("sooner", available_at=kit.now + 30))
    assert await kit.broker.wait_for_document(kit.queue, short) == MARKER


async def test_work_left_behind_wakes_the_next_worker(kit: Kit) -> None:
    await kit.put(job("a"), job("b"))
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5)) == MARKER
    await kit.exchange(want=1, woken=True, worker="w1")
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5)) == MARKER
    assert len((await kit.exchange(want=1, woken=True, worker="w2")).claimed) == 1


async def test_service_times_are_averaged(kit: Kit) -> None:
    await kit.exchange(served={"send": RunTimes(4, 2.0, {18: 4})})
    load = await kit.broker.gather(kit.queue, horizon=timedelta(seconds=10))
    assert load.service_time == {"send": pytest.approx(0.5)}
    await kit.exchange(served={"send": RunTimes(1, 1.5, {22: 1})})
    load = await kit.broker.gather(kit.queue, horizon=timedelta(seconds=10))
    assert load.service_time["send"] == pytest.approx(0.55)


async def test_the_load_of_a_queue(kit: Kit) -> None:
    now = kit.now
    await kit.put(job("old", available_at=now - 7), job("b", available_at=now - 1))
    await kit.put(job("soon", available_at=now + 5), job("far", available_at=now + 500))
    await kit.put_document(b'{"task":"send"}')
    await claim_one(kit, worker="w1")
    load = await kit.broker.gather(kit.queue, horizon=timedelta(seconds=60))
    assert (load.backlog, load.due_soon, load.in_flight) == (2, 1, 1)
    assert load.busy_workers == {"w1": 1}
    assert load.enqueued == 4
    assert 0.5 < load.oldest_age < 6
    assert load.next_due is not None
    assert load.next_due == pytest.approx((now + 5) * 1000, abs=2)
