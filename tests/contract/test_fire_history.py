"""The history of a CronTask: each verdict, and how its run ended, long after the job is gone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.conftest import LEASE, Kit
from tests.contract.test_fires import START, UID, admit, decide, fire
from tidework.broker.fires import MOST_FIRES
from tidework.clock import from_ms
from tidework.errors import StaleTermError
from tidework.model.fire import ConcurrencyPolicy, Fire, FireKind, Verdict, fire_id
from tidework.model.job import Job, JobState
from tidework.model.lease import ClaimedJob, QueueLimits, Settlement
from tidework.model.outcome import JobError, Outcome

BOOM = JobError("ValueError", "boom")


async def history(kit: Kit) -> tuple[Fire, ...]:
    return await kit.broker.fires(kit.queue, UID)


async def the_run(kit: Kit) -> Fire:
    (found,) = await history(kit)
    return found


async def claim(kit: Kit) -> ClaimedJob:
    (held,) = (await kit.exchange(want=1)).claimed
    return held


async def end(kit: Kit, held: ClaimedJob, outcome: Outcome) -> None:
    await kit.exchange(Settlement(held.id, held.token, outcome))


async def test_nothing_is_known_of_a_crontask_that_never_fired(kit: Kit) -> None:
    assert await history(kit) == ()
    await admit(kit)
    assert await history(kit) == ()


async def test_a_run_is_in_the_history_with_its_verdict_and_then_its_end(kit: Kit) -> None:
    await admit(kit)
    await decide(kit, fire(START + 60))
    found = await the_run(kit)
    assert (found.kind, found.verdict) == (FireKind.SCHEDULE, Verdict.ENQUEUED)
    assert (found.due, found.job_id) == (from_ms(1000 * (START + 60)), fire_id(UID, START + 60))
    assert found.lateness == found.decided_at - found.due
    assert (found.outcome, found.ended_at, found.duration) == (None, None, None)
    held = await claim(kit)
    await kit.let_pass(timedelta(milliseconds=5))
    await end(kit, held, Outcome.complete())
    found = await the_run(kit)
    assert (found.outcome, found.attempts) == (JobState.SUCCEEDED, 1)
    job = await kit.broker.get_job(kit.queue, held.id)
    assert job is not None
    assert (found.claimed_at, found.started_at) == (job.started_at, job.started_at)
    assert found.ended_at == job.changed_at
    assert found.duration is not None
    assert found.duration > timedelta(0)


async def test_a_result_does_not_keep_the_end_out_of_the_history(kit: Kit) -> None:
    await admit(kit)
    await decide(kit, fire(START + 60))
    await end(kit, await claim(kit), Outcome.complete(b"[3]"))
    assert (await the_run(kit)).outcome is JobState.SUCCEEDED


async def test_the_first_claim_counts_for_the_start_and_the_last_one_for_the_duration(
    kit: Kit,
) -> None:
    await admit(kit)
    await decide(kit, fire(START + 60))
    await end(kit, await claim(kit), Outcome.retry(BOOM, timedelta(0)))
    assert (await the_run(kit)).outcome is None
    await kit.let_pass(timedelta(milliseconds=5))
    await end(kit, await claim(kit), Outcome.bury(BOOM))
    found = await the_run(kit)
    assert (found.outcome, found.attempts) == (JobState.DEAD, 2)
    assert found.claimed_at is not None
    assert found.started_at is not None
    assert found.claimed_at < found.started_at


async def test_a_run_that_never_started_has_no_duration(kit: Kit) -> None:
    await admit(kit)
    await decide(kit, fire(START + 60))
    await kit.broker.cancel(kit.queue, fire_id(UID, START + 60))
    found = await the_run(kit)
    assert (found.outcome, found.attempts) == (JobState.CANCELLED, 0)
    assert (found.claimed_at, found.duration, found.start_delay) == (None, None, None)


async def test_a_run_that_was_cancelled_between_two_attempts_has_no_duration(kit: Kit) -> None:
    await admit(kit)
    await decide(kit, fire(START + 60))
    held = await claim(kit)
    await end(kit, held, Outcome.retry(BOOM, timedelta(seconds=60)))
    await kit.broker.cancel(kit.queue, held.id)
    found = await the_run(kit)
    assert (found.outcome, found.duration) == (JobState.CANCELLED, None)
    assert found.claimed_at is not None


async def test_a_run_whose_worker_was_lost_to_the_poison_cap_is_dead(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, poison_cap=1))
    await admit(kit)
    await decide(kit, fire(START + 60))
    await claim(kit)
    await kit.broker.upkeep(kit.queue)
    await kit.let_pass(LEASE * 3)
    for _ in range(2):  # the first one sees the pause and holds the reaper back for a lease
        await kit.broker.upkeep(kit.queue)
        await kit.let_pass(LEASE * 1.5)
    await kit.broker.upkeep(kit.queue)
    assert (await the_run(kit)).outcome is JobState.DEAD


async def test_a_replayed_run_is_under_way_again_and_its_outcome_changes(kit: Kit) -> None:
    await admit(kit)
    await decide(kit, fire(START + 60))
    held = await claim(kit)
    await end(kit, held, Outcome.bury(BOOM))
    await kit.broker.replay(kit.queue, [held.id])
    again = await the_run(kit)
    assert (again.outcome, again.ended_at, again.attempts) == (None, None, 0)
    await end(kit, await claim(kit), Outcome.complete())
    assert (await the_run(kit)).outcome is JobState.SUCCEEDED


async def test_the_history_outlives_the_job(kit: Kit) -> None:
    await admit(kit)
    await decide(kit, fire(START + 60))
    held = await claim(kit)
    await end(kit, held, Outcome.complete())
    before = await history(kit)
    await kit.broker.purge(kit.queue, [held.id])
    assert await kit.broker.get_job(kit.queue, held.id) is None
    assert await history(kit) == before


async def test_fires_that_came_to_no_job_are_one_entry_while_their_verdict_is_one(
    kit: Kit,
) -> None:
    await admit(kit)
    missed, late = Verdict.MISSED_CATCH_UP, Verdict.MISSED_DEADLINE
    await decide(kit, *(fire(START + 60 * i, wanted=missed) for i in (1, 2, 3)))
    await decide(
        kit, fire(START + 240, wanted=late), fire(START + 300), fire(START + 360, wanted=late)
    )
    found = [(f.verdict, f.count, f.first_due, f.due) for f in (await history(kit))[::-1]]

    def at(minute: int) -> object:
        return from_ms(1000 * (START + 60 * minute))

    assert sorted(found, key=lambda entry: entry[2]) == [
        (missed, 3, at(1), at(3)),
        (late, 1, at(4), at(4)),
        (Verdict.ENQUEUED, 1, at(5), at(5)),
        (late, 1, at(6), at(6)),
    ]


async def test_a_skipped_fire_is_in_the_history(kit: Kit) -> None:
    await admit(kit)
    forbid = ConcurrencyPolicy.FORBID
    await decide(kit, fire(START + 60, policy=forbid))
    await kit.let_pass(timedelta(milliseconds=5))
    await decide(kit, fire(START + 120, policy=forbid))
    newest, oldest = await history(kit)
    assert (newest.verdict, newest.job_id) == (Verdict.SKIPPED_OVERLAP, "")
    assert (oldest.verdict, oldest.outcome) == (Verdict.ENQUEUED, None)


async def test_a_replaced_run_ends_in_the_step_of_the_next_verdict(kit: Kit) -> None:
    await admit(kit)
    replace = ConcurrencyPolicy.REPLACE
    await decide(kit, fire(START + 60, policy=replace))
    await kit.let_pass(timedelta(milliseconds=5))
    await decide(kit, fire(START + 120, policy=replace))
    newest, oldest = await history(kit)
    assert (newest.outcome, oldest.outcome) == (None, JobState.CANCELLED)


async def test_a_resent_fire_has_one_entry(kit: Kit) -> None:
    await admit(kit)
    for _ in range(2):
        await decide(kit, fire(START + 60, wanted=Verdict.MISSED_DEADLINE))
    assert (await the_run(kit)).count == 1


async def test_a_stale_leader_writes_no_history(kit: Kit) -> None:
    await admit(kit)
    await kit.broker.take_term(kit.queue)
    with pytest.raises(StaleTermError):
        await decide(kit, fire(START + 60), term=0)
    assert await history(kit) == ()


async def test_a_run_by_hand_says_who_asked_and_why(kit: Kit) -> None:
    await admit(kit)
    job = Job(f"{UID}-run-n1", "report", {})
    assert await kit.broker.run_now(kit.queue, None, UID, "n1", job, note="ann: month's end")
    found = await the_run(kit)
    assert (found.kind, found.job_id) == (FireKind.BY_HAND, job.id)
    assert (found.due, found.note) == (found.decided_at, "ann: month's end")
    await end(kit, await claim(kit), Outcome.complete())
    found = await the_run(kit)
    assert (found.outcome, found.note) == (JobState.SUCCEEDED, "ann: month's end")


async def test_the_newest_are_kept(kit: Kit) -> None:
    await admit(kit)
    await decide(kit, *(fire(START + i) for i in range(1, MOST_FIRES + 21)))
    found = await history(kit)
    assert len(found) == MOST_FIRES
    oldest = min(entry.due for entry in found)
    assert oldest == from_ms(1000 * (START + 21))
    # A run that is not in it any more ends as any other.
    await end(kit, await claim(kit), Outcome.complete())
    assert {entry.outcome for entry in await history(kit)} == {None}


async def test_the_history_goes_with_its_crontask_and_a_late_end_brings_nothing_back(
    kit: Kit,
) -> None:
    await admit(kit)
    await decide(kit, fire(START + 60))
    held = await claim(kit)
    await kit.broker.put_crontasks(kit.queue, 1, {})
    assert await history(kit) == ()
    await end(kit, held, Outcome.complete())
    assert await history(kit) == ()
    await admit(kit)
    assert await history(kit) == ()


async def test_a_run_by_hand_of_a_crontask_that_is_gone_leaves_nothing(kit: Kit) -> None:
    await kit.broker.run_now(kit.queue, None, UID, "n", Job(f"{UID}-run-n", "report", {}))
    assert await history(kit) == ()


async def test_another_schedule_goes_on_with_the_same_history(kit: Kit) -> None:
    await admit(kit)
    await decide(kit, fire(START + 60))
    await kit.broker.admit_cron(kit.queue, 1, UID, "f2", START + 90, reset=False)
    await decide(kit, fire(START + 120, fingerprint="f2"))
    assert {entry.due for entry in await history(kit)} == {
        from_ms(1000 * (START + 60)),
        from_ms(1000 * (START + 120)),
    }
