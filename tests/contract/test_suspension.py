"""A person suspends a CronTask: it holds in the step of the verdict, whoever leads."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.contract.conftest import Kit
from tests.contract.test_fires import START, UID, admit, decide, fire
from tidework.broker.answers import SuspendAnswer
from tidework.clock import from_ms
from tidework.model.fire import CronRecord, FireAnswer, Suspension, Verdict
from tidework.model.job import Job, JobState

SUSPENDED = [FireAnswer.SUSPENDED]
ENQUEUED = [Verdict.ENQUEUED]


def second(kit: Kit, later: float = 0) -> int:
    """Of the broker's clock."""
    return int(kit.now + later)


async def suspend(kit: Kit, until: datetime | None = None, *, by: str = "ann") -> SuspendAnswer:
    found = await kit.broker.suspend_cron(kit.queue, UID, by=by, reason="a repair", until=until)
    assert found is not None
    return found


async def resume(kit: Kit) -> Suspension | None:
    return await kit.broker.resume_cron(kit.queue, UID)


async def record(kit: Kit) -> CronRecord:
    found = await kit.broker.cron_record(kit.queue, UID)
    assert found is not None
    return found


async def test_nothing_fires_and_nothing_is_made_up_for(kit: Kit) -> None:
    await admit(kit, start=second(kit, -600))
    held = await suspend(kit)
    assert (held.before, held.suspension.by, held.suspension.reason) == (False, "ann", "a repair")
    assert await decide(kit, fire(second(kit, -120))) == SUSPENDED
    found = await record(kit)
    assert found.suspension == held.suspension
    assert sum(found.verdicts.values()) == 0
    assert await kit.broker.fires(kit.queue, UID) == ()
    assert await resume(kit) == held.suspension
    assert await decide(kit, fire(second(kit, -60))) == [FireAnswer.STALE_FIRE]
    assert await decide(kit, fire(second(kit, 60))) == ENQUEUED
    assert (await record(kit)).suspension is None


async def test_what_was_due_before_and_not_decided_does_not_fire_later_either(kit: Kit) -> None:
    await admit(kit, start=second(kit, -600))
    await suspend(kit)
    await resume(kit)
    assert await decide(kit, fire(second(kit, -60))) == [FireAnswer.STALE_FIRE]


async def test_a_missed_fire_gets_no_verdict_while_it_is_suspended(kit: Kit) -> None:
    await admit(kit)
    await suspend(kit)
    assert await decide(kit, fire(START + 60, wanted=Verdict.MISSED_CATCH_UP)) == SUSPENDED
    assert sum((await record(kit)).verdicts.values()) == 0


async def test_a_verdict_that_was_written_before_is_told_to_a_resend(kit: Kit) -> None:
    await admit(kit)
    await decide(kit, fire(START + 60))
    await suspend(kit)
    assert await decide(kit, fire(START + 60)) == ENQUEUED


async def test_the_next_leader_obeys_as_well(kit: Kit) -> None:
    await admit(kit)
    await suspend(kit)
    term = await kit.broker.take_term(kit.queue)
    assert await decide(kit, fire(START + 60), term=term) == SUSPENDED


async def test_it_ends_by_itself_and_the_fire_of_that_moment_runs(kit: Kit) -> None:
    await admit(kit, start=second(kit, -600))
    ends = second(kit, 2)
    await suspend(kit, from_ms(1000 * ends))
    assert await decide(kit, fire(ends - 1)) == SUSPENDED
    # Asked for ahead of time: the scheduler's clock is ahead of the server's.
    assert await decide(kit, fire(ends)) == ENQUEUED
    assert (await record(kit)).suspension is None


async def test_what_fell_due_before_its_end_does_not_fire_after_it(kit: Kit) -> None:
    await admit(kit, start=second(kit, -600))
    ends = kit.now + 0.3
    await suspend(kit, from_ms(round(1000 * ends)))
    await kit.let_pass(timedelta(milliseconds=400))
    assert await decide(kit, fire(int(ends) - 5)) == SUSPENDED
    assert await decide(kit, fire(int(ends) + 1)) == ENQUEUED


async def test_to_resume_one_that_is_over_says_so_and_what_fell_due_meanwhile_is_gone(
    kit: Kit,
) -> None:
    await admit(kit, start=second(kit, -600))
    await suspend(kit, from_ms(round(1000 * (kit.now + 0.2))))
    await kit.let_pass(timedelta(milliseconds=300))
    assert await resume(kit) is None
    assert await decide(kit, fire(second(kit, -5))) == [FireAnswer.STALE_FIRE]


async def test_of_two_people_the_first_one_holds_it(kit: Kit) -> None:
    await admit(kit)
    first = await suspend(kit)
    second_one = await suspend(kit, by="bob")
    assert second_one == SuspendAnswer(first.suspension, before=True)
    assert await resume(kit) == first.suspension
    assert await resume(kit) is None


async def test_a_repetition_is_as_the_first_call(kit: Kit) -> None:
    await admit(kit)
    first = await suspend(kit)
    await kit.let_pass(timedelta(milliseconds=5))
    assert await suspend(kit) == first


async def test_after_one_that_is_over_another_one_may_come(kit: Kit) -> None:
    await admit(kit)
    await suspend(kit, from_ms(round(1000 * kit.now) - 1))
    found = await suspend(kit, by="bob")
    assert (found.before, found.suspension.by) == (False, "bob")


async def test_an_edit_of_the_schedule_does_not_end_it(kit: Kit) -> None:
    await admit(kit)
    await suspend(kit)
    await kit.broker.admit_cron(kit.queue, 1, UID, "f2", START, reset=False)
    assert await decide(kit, fire(START + 60, fingerprint="f2")) == SUSPENDED


async def test_it_may_come_before_the_first_admission(kit: Kit) -> None:
    await kit.broker.put_crontasks(kit.queue, 1, {UID: b"{}"})
    await suspend(kit)
    await kit.broker.admit_cron(kit.queue, 1, UID, "f1", START, reset=False)
    assert await decide(kit, fire(START + 60)) == SUSPENDED


async def test_a_crontask_that_is_not_mirrored_cannot_be_suspended(kit: Kit) -> None:
    answer = await kit.broker.suspend_cron(kit.queue, UID, by="ann", reason="a repair")
    assert answer is None
    assert await resume(kit) is None


async def test_it_goes_with_its_crontask(kit: Kit) -> None:
    await admit(kit)
    await suspend(kit)
    await kit.broker.put_crontasks(kit.queue, 1, {})
    assert await resume(kit) is None
    await admit(kit)
    assert await decide(kit, fire(START + 60)) == ENQUEUED


async def test_a_run_by_hand_runs_though_it_is_suspended(kit: Kit) -> None:
    await admit(kit)
    await suspend(kit)
    job = Job(f"{UID}-run-n", "report", {})
    assert await kit.broker.run_now(kit.queue, None, UID, "n", job)
    assert (await kit.broker.stats(kit.queue)).states[JobState.READY] == 1


@pytest.mark.parametrize("text", ["two\nlines", "a\ttab"])
async def test_reasons_are_kept_as_one_line(kit: Kit, text: str) -> None:
    await admit(kit)
    found = await kit.broker.suspend_cron(kit.queue, UID, by=text, reason=text)
    assert found is not None
    assert found.suspension.by == found.suspension.reason == " ".join(text.split())
    assert (await record(kit)).suspension == found.suspension
