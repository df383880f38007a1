"""Past instants that a person asks for: each at most once, and the schedule goes on undisturbed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from tests.contract.conftest import Kit
from tests.contract.test_fires import START, UID, admit, decide, fire
from tidework.broker.fires import MOST_FIRES
from tidework.model.fire import BackfillAnswer, ConcurrencyPolicy, Fire, FireKind, Verdict, fire_id
from tidework.model.job import Job, JobState
from tidework.model.lease import QueueLimits, Settlement
from tidework.model.outcome import Outcome

ENQUEUED, KNOWN = BackfillAnswer.ENQUEUED, BackfillAnswer.KNOWN
BUSY, UNDECIDED = BackfillAnswer.BUSY, BackfillAnswer.UNDECIDED


async def backfill(
    kit: Kit, *seconds: int, policy: ConcurrencyPolicy = ConcurrencyPolicy.ALLOW
) -> Sequence[BackfillAnswer]:
    jobs = {at: Job(fire_id(UID, at), "report", {}) for at in seconds}
    found = await kit.broker.backfill(kit.queue, UID, jobs, policy=policy, note="ann: a lost day")
    assert found is not None
    return list(found)


async def run_all(kit: Kit) -> None:
    while claimed := (await kit.exchange(want=100)).claimed:
        await kit.exchange(*(Settlement(c.id, c.token, Outcome.complete()) for c in claimed))


async def history(kit: Kit) -> dict[int, Fire]:
    found = await kit.broker.fires(kit.queue, UID)
    return {int(entry.due.timestamp()): entry for entry in found}


async def test_past_instants_run_and_the_watermark_stays(kit: Kit) -> None:
    await admit(kit)
    assert await backfill(kit, START - 120, START - 60) == [ENQUEUED, ENQUEUED]
    record = await kit.broker.cron_record(kit.queue, UID)
    assert record is not None
    assert (record.watermark, sum(record.verdicts.values())) == (START, 0)
    assert (record.last_fire, record.last_job) == (None, "")
    assert record.active == (fire_id(UID, START - 120), fire_id(UID, START - 60))
    await run_all(kit)
    found = (await history(kit))[START - 60]
    assert (found.kind, found.note) == (FireKind.BACKFILL, "ann: a lost day")
    assert found.outcome is JobState.SUCCEEDED
    assert await decide(kit, fire(START + 60)) == [Verdict.ENQUEUED]


async def test_a_backfilled_run_is_due_now_whatever_its_instant(kit: Kit) -> None:
    await admit(kit)
    await backfill(kit, START - 86_400)
    job = await kit.broker.get_job(kit.queue, fire_id(UID, START - 86_400))
    assert job is not None
    assert job.available_at is not None
    assert abs(job.available_at.timestamp() - kit.now) < 60


async def test_an_instant_that_ran_does_not_run_again(kit: Kit) -> None:
    await admit(kit)
    await decide(kit, fire(START + 60), fire(START + 120, wanted=Verdict.MISSED_DEADLINE))
    assert await backfill(kit, START + 60, START + 120) == [KNOWN, ENQUEUED]


async def test_an_instant_that_ran_is_known_from_the_history_when_its_job_is_gone(
    kit: Kit,
) -> None:
    none = timedelta(0)
    kit.use(QueueLimits(keep_succeeded=none, keep_dead=none))
    await admit(kit)
    await decide(kit, fire(START + 60))
    await run_all(kit)
    await kit.broker.upkeep(kit.queue)
    assert await kit.broker.get_job(kit.queue, fire_id(UID, START + 60)) is None
    assert await backfill(kit, START + 60) == [KNOWN]


async def test_a_repeated_backfill_runs_nothing_twice_also_when_the_history_has_forgotten(
    kit: Kit,
) -> None:
    await admit(kit)
    seconds = [START - at for at in range(1, 2 * MOST_FIRES)]
    for start in range(0, len(seconds), 50):
        assert set(await backfill(kit, *seconds[start : start + 50])) == {ENQUEUED}
    await run_all(kit)
    for start in range(0, len(seconds), 50):
        assert set(await backfill(kit, *seconds[start : start + 50])) == {KNOWN}
    assert (await kit.broker.stats(kit.queue)).counters["enqueued"] == len(seconds)


async def test_one_that_was_aborted_goes_on_with_what_is_left(kit: Kit) -> None:
    await admit(kit)
    await backfill(kit, START - 180, START - 120)
    assert await backfill(kit, START - 180, START - 120, START - 60) == [KNOWN, KNOWN, ENQUEUED]


async def test_what_lies_behind_the_watermark_is_the_leaders(kit: Kit) -> None:
    await admit(kit)
    assert await backfill(kit, START, START + 60) == [ENQUEUED, UNDECIDED]


@pytest.mark.parametrize("policy", [ConcurrencyPolicy.FORBID, ConcurrencyPolicy.REPLACE])
async def test_where_runs_may_not_overlap_there_is_one_at_a_time(
    kit: Kit, policy: ConcurrencyPolicy
) -> None:
    await admit(kit)
    wanted = (START - 120, START - 60)
    assert await backfill(kit, *wanted, policy=policy) == [ENQUEUED, BUSY]
    assert await backfill(kit, *wanted, policy=policy) == [KNOWN, BUSY]
    await run_all(kit)
    assert await backfill(kit, *wanted, policy=policy) == [KNOWN, ENQUEUED]


async def test_a_backfilled_run_counts_as_an_active_run(kit: Kit) -> None:
    await admit(kit)
    await backfill(kit, START - 60)
    forbid = ConcurrencyPolicy.FORBID
    assert await decide(kit, fire(START + 60, policy=forbid)) == [Verdict.SKIPPED_OVERLAP]


async def test_a_crontask_without_a_record_has_no_past(kit: Kit) -> None:
    jobs = {START: Job(fire_id(UID, START), "report", {})}
    policy = ConcurrencyPolicy.ALLOW
    assert await kit.broker.backfill(kit.queue, UID, jobs, policy=policy, note="") is None
    assert (await kit.broker.stats(kit.queue)).unfinished == 0


async def test_what_was_backfilled_is_forgotten_with_its_crontask(kit: Kit) -> None:
    await admit(kit)
    await backfill(kit, START - 60)
    await kit.broker.put_crontasks(kit.queue, 1, {})
    assert await kit.broker.cron_record(kit.queue, UID) is None
