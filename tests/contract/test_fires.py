"""Leadership and fires: one verdict per due instant, and no write of a stale leader."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.conftest import LEASE, Kit
from tidework.errors import StaleTermError
from tidework.model.backlog import Presence
from tidework.model.fire import ConcurrencyPolicy, FireAnswer, FireRequest, Verdict, fire_id
from tidework.model.job import Job, JobState
from tidework.model.lease import QueueLimits, Settlement
from tidework.model.outcome import JobError, Outcome

UID = "11111111-2222-3333-4444-555555555555"
START = 1_800_000_000
SEEN = datetime(2026, 1, 1, tzinfo=UTC)


def fire(
    at: int,
    *,
    wanted: Verdict = Verdict.ENQUEUED,
    policy: ConcurrencyPolicy = ConcurrencyPolicy.ALLOW,
    max_runs: int | None = None,
    fingerprint: str = "f1",
) -> FireRequest:
    job = Job(id=fire_id(UID, at), task="report", params={}, created_at=float(at))
    missed = wanted is not Verdict.ENQUEUED
    return FireRequest(UID, fingerprint, at, wanted, policy, max_runs, None if missed else job)


async def admit(kit: Kit, *, term: int = 1, fingerprint: str = "f1", start: int = START) -> None:
    # Whoever admits has mirrored before, so that the record is forgotten one day.
    await kit.broker.put_crontasks(kit.queue, term, {UID: b"{}"})
    await kit.broker.admit_cron(kit.queue, term, UID, fingerprint, start, reset=False)


async def decide(kit: Kit, *requests: FireRequest, term: int = 1) -> list[Verdict | FireAnswer]:
    return list(await kit.broker.decide_fires(kit.queue, term, requests))


async def test_terms_rise(kit: Kit) -> None:
    assert [await kit.broker.take_term(kit.queue) for _ in range(3)] == [1, 2, 3]


async def test_one_holder_leads_until_it_stops_to_renew(kit: Kit) -> None:
    ttl = timedelta(milliseconds=300)
    assert await kit.broker.lead(kit.queue, "a", ttl) == 1
    assert await kit.broker.lead(kit.queue, "b", ttl) is None
    assert await kit.broker.lead(kit.queue, "a", ttl) == 1
    await kit.let_pass(ttl * 1.5)
    assert await kit.broker.lead(kit.queue, "b", ttl) == 2
    await kit.broker.resign(kit.queue, "a")
    assert await kit.broker.lead(kit.queue, "a", ttl) is None
    await kit.broker.resign(kit.queue, "b")
    assert await kit.broker.lead(kit.queue, "a", ttl) == 3


async def test_a_holder_whose_term_was_raised_leads_no_more(kit: Kit) -> None:
    ttl = timedelta(milliseconds=300)
    assert await kit.broker.lead(kit.queue, "a", ttl) == 1
    assert await kit.broker.take_term(kit.queue) == 2
    assert await kit.broker.lead(kit.queue, "a", ttl) is None
    await kit.let_pass(ttl * 1.5)
    assert await kit.broker.lead(kit.queue, "a", ttl) == 3


async def test_a_fire_is_decided_once(kit: Kit) -> None:
    await admit(kit)
    assert await decide(kit, fire(START + 60)) == [Verdict.ENQUEUED]
    assert await decide(kit, fire(START + 120)) == [Verdict.ENQUEUED]
    assert await decide(kit, fire(START + 60)) == [FireAnswer.STALE_FIRE]
    record = await kit.broker.cron_record(kit.queue, UID)
    assert record is not None
    assert (record.watermark, record.last_fire) == (START + 120, START + 120)
    assert record.verdicts[Verdict.ENQUEUED] == 2
    assert record.last_job == fire_id(UID, START + 120)
    assert record.active == (fire_id(UID, START + 60), fire_id(UID, START + 120))
    stats = await kit.broker.stats(kit.queue)
    assert stats.states[JobState.READY] == 2


async def test_a_resent_fire_answers_the_same_and_enqueues_once(kit: Kit) -> None:
    await admit(kit)
    first = await decide(kit, fire(START + 60))
    assert await decide(kit, fire(START + 60)) == first == [Verdict.ENQUEUED]
    assert (await kit.broker.stats(kit.queue)).counters["enqueued"] == 1
    record = await kit.broker.cron_record(kit.queue, UID)
    assert record is not None
    assert record.verdicts[Verdict.ENQUEUED] == 1


async def test_a_stale_leader_cannot_write(kit: Kit) -> None:
    await admit(kit, term=1)
    await admit(kit, term=2)
    with pytest.raises(StaleTermError) as caught:
        await decide(kit, fire(START + 60), term=1)
    assert (caught.value.term, caught.value.stored) == (1, 2)
    with pytest.raises(StaleTermError):
        await kit.broker.admit_cron(kit.queue, 1, UID, "f2", START, reset=False)
    with pytest.raises(StaleTermError):
        await kit.broker.put_crontasks(kit.queue, 1, {})
    job = Job(id="x", task="t", params={})
    with pytest.raises(StaleTermError):
        await kit.broker.run_now(kit.queue, 1, UID, "n", job)
    stats = await kit.broker.stats(kit.queue)
    assert (stats.counters["stale_terms"], stats.unfinished) == (4, 0)
    assert await decide(kit, fire(START + 60), term=2) == [Verdict.ENQUEUED]


async def test_missed_fires_are_counted_and_not_enqueued(kit: Kit) -> None:
    await admit(kit)
    answers = await decide(
        kit,
        fire(START + 60, wanted=Verdict.MISSED_CATCH_UP),
        fire(START + 120, wanted=Verdict.MISSED_DEADLINE),
        fire(START + 180),
    )
    assert answers == [Verdict.MISSED_CATCH_UP, Verdict.MISSED_DEADLINE, Verdict.ENQUEUED]
    record = await kit.broker.cron_record(kit.queue, UID)
    assert record is not None
    assert record.verdicts == {
        Verdict.ENQUEUED: 1,
        Verdict.SKIPPED_OVERLAP: 0,
        Verdict.MISSED_DEADLINE: 1,
        Verdict.MISSED_CATCH_UP: 1,
    }
    assert (await kit.broker.stats(kit.queue)).states[JobState.READY] == 1


async def test_the_watermark_never_moves_back(kit: Kit) -> None:
    await admit(kit)
    await decide(kit, fire(START + 600))
    record = await kit.broker.admit_cron(kit.queue, 1, UID, "f2", START + 30, reset=False)
    assert (record.watermark, record.fingerprint) == (START + 600, "f2")
    record = await kit.broker.admit_cron(kit.queue, 1, UID, "f2", START + 900, reset=False)
    assert record.watermark == START + 600
    record = await kit.broker.admit_cron(kit.queue, 1, UID, "f2", START + 900, reset=True)
    assert record.watermark == START + 900
    assert await decide(kit, fire(START + 960)) == [FireAnswer.CHANGED]


async def finish_run(kit: Kit, job_id: str) -> None:
    reply = await kit.exchange(want=10)
    for claimed in reply.claimed:
        outcome = Outcome.complete() if claimed.id == job_id else Outcome.release()
        await kit.exchange(Settlement(claimed.id, claimed.token, outcome))


async def test_forbid_skips_while_a_run_is_unfinished(kit: Kit) -> None:
    await admit(kit)
    policy = ConcurrencyPolicy.FORBID
    assert await decide(kit, fire(START + 60, policy=policy)) == [Verdict.ENQUEUED]
    assert await decide(kit, fire(START + 120, policy=policy)) == [Verdict.SKIPPED_OVERLAP]
    await finish_run(kit, fire_id(UID, START + 60))
    assert await decide(kit, fire(START + 180, policy=policy)) == [Verdict.ENQUEUED]


async def test_a_retried_run_is_still_active(kit: Kit) -> None:
    await admit(kit)
    policy = ConcurrencyPolicy.FORBID
    await decide(kit, fire(START + 60, policy=policy))
    claimed = (await kit.exchange(want=1)).claimed[0]
    retry = Outcome.retry(JobError("E", "x"), timedelta(seconds=60))
    await kit.exchange(Settlement(claimed.id, claimed.token, retry))
    assert await decide(kit, fire(START + 120, policy=policy)) == [Verdict.SKIPPED_OVERLAP]
    assert await kit.broker.cancel(kit.queue, claimed.id) == "cancelled"
    assert await decide(kit, fire(START + 180, policy=policy)) == [Verdict.ENQUEUED]


async def test_replace_cancels_a_waiting_run(kit: Kit) -> None:
    await admit(kit)
    policy = ConcurrencyPolicy.REPLACE
    await decide(kit, fire(START + 60, policy=policy), fire(START + 120, policy=policy))
    old = await kit.broker.get_job(kit.queue, fire_id(UID, START + 60))
    new = await kit.broker.get_job(kit.queue, fire_id(UID, START + 120))
    assert old is not None
    assert new is not None
    assert (old.state, new.state) == (JobState.CANCELLED, JobState.READY)


@pytest.mark.parametrize("end", ["settled", "reaped"])
async def test_replace_holds_the_new_run_until_the_old_one_ended(kit: Kit, end: str) -> None:
    await admit(kit)
    policy = ConcurrencyPolicy.REPLACE
    await decide(kit, fire(START + 60, policy=policy))
    claimed = (await kit.exchange(want=1)).claimed[0]
    assert await decide(kit, fire(START + 120, policy=policy)) == [Verdict.ENQUEUED]
    assert await decide(kit, fire(START + 180, policy=policy)) == [Verdict.ENQUEUED]
    held_id = fire_id(UID, START + 180)
    held = await kit.broker.get_job(kit.queue, held_id)
    superseded = await kit.broker.get_job(kit.queue, fire_id(UID, START + 120))
    assert held is not None
    assert superseded is not None
    assert (held.state, held.available_at) == (JobState.SCHEDULED, None)
    assert superseded.state is JobState.CANCELLED
    assert (await kit.broker.upkeep(kit.queue)).promoted == 0
    load = await kit.broker.gather(kit.queue, horizon=timedelta(days=400))
    assert (load.backlog, load.due_soon, load.next_due) == (0, 0, None)
    if end == "settled":
        await kit.exchange(Settlement(claimed.id, claimed.token, Outcome.cancelled()))
    else:
        await kit.let_pass(LEASE * 1.5)
        await kit.broker.upkeep(kit.queue)
    assert [c.id for c in (await kit.exchange(want=5, worker="w2")).claimed] == [held_id]
    record = await kit.broker.cron_record(kit.queue, UID)
    assert record is not None
    assert (record.held, record.active) == ("", (held_id,))


async def test_a_held_run_outlives_its_crontask(kit: Kit) -> None:
    policy = ConcurrencyPolicy.REPLACE
    await kit.broker.put_crontasks(kit.queue, 1, {UID: b"{}"})
    await admit(kit)
    await decide(kit, fire(START + 60, policy=policy))
    claimed = (await kit.exchange(want=1)).claimed[0]
    await decide(kit, fire(START + 120, policy=policy))
    await kit.broker.put_crontasks(kit.queue, 1, {})
    assert await kit.broker.cron_record(kit.queue, UID) is None
    reply = await kit.exchange(
        Settlement(claimed.id, claimed.token, Outcome.cancelled()), want=5, worker="w1"
    )
    assert [c.id for c in reply.claimed] == [fire_id(UID, START + 120)]


async def test_max_runs(kit: Kit) -> None:
    await admit(kit)
    assert await decide(kit, fire(START + 60, max_runs=1)) == [Verdict.ENQUEUED]
    assert await decide(kit, fire(START + 120, max_runs=1)) == [FireAnswer.EXHAUSTED]


async def test_a_manual_run_is_apart_from_the_schedule(kit: Kit) -> None:
    await admit(kit)
    first = Job(id=f"{UID}-run-n1", task="report", params={})
    assert await kit.broker.run_now(kit.queue, 1, UID, "n1", first) is True
    assert await kit.broker.run_now(kit.queue, 1, UID, "n1", first) is False
    by_hand = Job(id=f"{UID}-run-n2", task="report", params={})
    assert await kit.broker.run_now(kit.queue, None, UID, "n2", by_hand) is True
    record = await kit.broker.cron_record(kit.queue, UID)
    assert record is not None
    assert (record.watermark, record.last_run_now, record.by_hand) == (START, "n1", 2)
    assert record.active == (first.id, by_hand.id)
    forbidden = fire(START + 60, policy=ConcurrencyPolicy.FORBID)
    assert await decide(kit, forbidden) == [Verdict.SKIPPED_OVERLAP]


async def test_the_mirror_of_crontasks(kit: Kit) -> None:
    await admit(kit)
    await kit.broker.put_crontasks(kit.queue, 1, {UID: b'{"name":"report"}', "u2": b"{}"})
    assert await kit.broker.crontasks(kit.queue) == {UID: {"name": "report"}, "u2": {}}
    await kit.broker.put_crontasks(kit.queue, 1, {"u2": b"{}"})
    assert await kit.broker.crontasks(kit.queue) == {"u2": {}}
    assert await kit.broker.cron_record(kit.queue, UID) is None


async def test_many_fires_in_one_go(kit: Kit) -> None:
    await admit(kit)
    requests = [fire(START + i) for i in range(1, 1201)]
    answers = await decide(kit, *requests)
    assert answers == [Verdict.ENQUEUED] * 1200
    assert (await kit.broker.stats(kit.queue)).states[JobState.READY] == 1200


async def test_presence_comes_and_goes(kit: Kit) -> None:
    ttl = timedelta(milliseconds=300)
    for name in ("w2", "w1"):
        document = {"slots": 2, "host": name}
        presence = Presence(name, seen_at=SEEN, document=document)
        await kit.broker.beat(kit.queue, presence, ttl=ttl)
    found = await kit.broker.workers(kit.queue)
    assert [(p.incarnation, p.document["host"]) for p in found] == [("w1", "w1"), ("w2", "w2")]
    await kit.broker.leave(kit.queue, "w1")
    assert [p.incarnation for p in await kit.broker.workers(kit.queue)] == ["w2"]
    await kit.let_pass(ttl * 1.5)
    await kit.broker.beat(kit.queue, Presence("w3", seen_at=SEEN), ttl=ttl)
    assert [p.incarnation for p in await kit.broker.workers(kit.queue)] == ["w3"]


async def test_a_request_that_arrives_after_its_worker_left_claims_nothing(kit: Kit) -> None:
    presence = Presence("w1", seen_at=SEEN)
    await kit.broker.beat(kit.queue, presence, ttl=timedelta(seconds=30))
    await kit.exchange(want=1, sequence=1)
    await kit.broker.leave(kit.queue, "w1")
    await kit.put(Job("a", "t", {}))
    assert await kit.broker.workers(kit.queue) == ()

    late = await kit.exchange(want=1, sequence=1)

    assert late.claimed == ()
    assert [c.id for c in (await kit.exchange(want=1, worker="w2")).claimed] == ["a"]


async def test_the_last_worker_of_a_queue_is_forgotten_by_upkeep(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, keep_presence=timedelta(milliseconds=200)))
    await kit.broker.beat(kit.queue, Presence("w1", seen_at=SEEN), ttl=timedelta(seconds=30))
    await kit.broker.upkeep(kit.queue)
    assert [p.incarnation for p in await kit.broker.workers(kit.queue)] == ["w1"]
    await kit.let_pass(timedelta(milliseconds=300))
    await kit.broker.upkeep(kit.queue)
    assert await kit.broker.workers(kit.queue) == ()
