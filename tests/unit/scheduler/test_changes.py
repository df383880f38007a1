"""CronTasks that are edited, suspended, resumed, run by hand, removed."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.unit.scheduler.rig import QUEUE, Rig, at, make_spec, unix
from tidework.model.fire import ConcurrencyPolicy, Verdict
from tidework.model.schedules.schedule import Every
from tidework.scheduler.due import CatchUp, CatchUpMode, FireRules

ENQUEUED, SKIPPED = Verdict.ENQUEUED, Verdict.SKIPPED_OVERLAP


async def test_a_suspended_crontask_does_not_fire_and_resuming_makes_nothing_up() -> None:
    rig = Rig(make_spec(catch_up=CatchUp(CatchUpMode.ALL)))
    await rig.run_to("10:01:00")
    rig.change(suspend=True)
    await rig.run_to("10:30:10")
    assert await rig.verdicts() == {ENQUEUED: 1}

    rig.change(suspend=False)
    await rig.run_to("10:32:00")

    assert await rig.jobs() == [f"digest-{unix(f'10:{m}:00')}" for m in ("01", "31", "32")]
    assert await rig.verdicts() == {ENQUEUED: 3}


async def test_resuming_under_another_leader_makes_nothing_up_either() -> None:
    spec = make_spec(catch_up=CatchUp(CatchUpMode.ALL))
    rig = Rig(spec)
    await rig.run_to("10:01:00")
    rig.change(suspend=True)
    await rig.settle()
    await rig.leadership.resign()
    second = rig.another(spec)

    await second.outage_to("10:30:10")
    await second.run_to("10:31:00")

    assert await rig.verdicts() == {ENQUEUED: 2}


async def test_resuming_makes_nothing_up_if_redis_never_heard_of_the_suspension() -> None:
    rig = Rig(make_spec(catch_up=CatchUp(CatchUpMode.ALL)))
    await rig.run_to("10:01:00")
    rig.broker.away = True
    rig.change(suspend=True)
    await rig.outage_to("10:10:00")
    rig.change(suspend=False)
    await rig.outage_to("10:10:05")
    rig.broker.away = False

    await rig.run_to("10:12:00")

    assert await rig.verdicts() == {ENQUEUED: 3}


async def test_a_changed_schedule_never_fires_retroactively() -> None:
    rig = Rig(make_spec("0 0 * * *", catch_up=CatchUp(CatchUpMode.ALL)))
    await rig.run_to("10:05:30")
    spec = rig.registry.specs["digest"]

    rig.change(rules=FireRules(Every(timedelta(seconds=20)), catch_up=spec.rules.catch_up))
    await rig.run_to("10:06:00")

    assert await rig.jobs() == [f"digest-{unix(t)}" for t in ("10:05:40", "10:06:00")]


async def test_a_change_that_moves_no_fire_disturbs_nothing() -> None:
    rig = Rig(make_spec())
    await rig.run_to("10:01:30")

    rig.change(params={"to": "staff"}, priority=1)
    await rig.run_to("10:02:00")

    record = await rig.memory.get_job(QUEUE, f"digest-{unix('10:02:00')}")
    assert record is not None
    assert json.loads(record.body)["params"] == {"to": "staff"}
    assert await rig.verdicts() == {ENQUEUED: 2}


async def test_a_removed_crontask_stops_and_is_forgotten() -> None:
    rig = Rig(make_spec(), make_spec(uid="other"))
    await rig.run_to("10:01:00")

    rig.registry.replace([rig.registry.specs["other"]])
    await rig.run_to("10:02:00")

    assert await rig.memory.cron_record(QUEUE, "digest") is None
    assert len(await rig.jobs()) == 3
    assert set(await rig.memory.crontasks(QUEUE)) == {"other"}


async def test_a_queue_whose_last_crontask_left_is_cleared_and_given_up() -> None:
    rig = Rig(make_spec())
    await rig.run_to("10:01:00")

    rig.registry.replace([])
    assert rig.scheduler.queues() == {QUEUE}
    await rig.settle()

    assert await rig.memory.crontasks(QUEUE) == {}
    assert rig.scheduler.queues() == frozenset()
    await rig.leadership.tick()
    assert rig.leadership.term(QUEUE) is None
    assert await rig.memory.lead(QUEUE, "c", timedelta(seconds=1)) is not None


async def test_documents_are_mirrored_on_change() -> None:
    rig = Rig(make_spec(document=b'{"v":1}'))
    await rig.settle()
    assert await rig.memory.crontasks(QUEUE) == {"digest": {"v": 1}}
    before = rig.broker.calls.count("put_crontasks")

    await rig.run_to("10:01:00")
    rig.change(document=b'{"v":2}')
    await rig.settle()

    assert await rig.memory.crontasks(QUEUE) == {"digest": {"v": 2}}
    assert rig.broker.calls.count("put_crontasks") == before + 1


@pytest.mark.parametrize("suspend", [False, True])
async def test_a_manual_run_happens_once_per_nonce_even_while_suspended(suspend: bool) -> None:
    rig = Rig(make_spec("0 0 * * *", suspend=suspend))
    await rig.settle()
    rig.change(run_now="2026-01-05 by anna")
    await rig.run_to("10:00:10")
    [manual] = await rig.jobs()
    assert manual.startswith("digest-run-")
    assert (await rig.record()).active == (manual,)
    assert rig.scheduler.counters.manual_runs == 1

    await rig.leadership.resign()
    second = rig.another()
    await second.run_to("10:00:20")
    assert await rig.jobs() == [manual]

    second.change(run_now="once more")
    await second.settle()
    assert len(await rig.jobs()) == 2
    assert await rig.verdicts() == {}


async def test_a_manual_run_counts_as_an_active_run() -> None:
    rig = Rig(make_spec(policy=ConcurrencyPolicy.FORBID, run_now="now"))

    await rig.run_to("10:01:00")

    assert await rig.verdicts() == {SKIPPED: 1}
    status = await rig.scheduler.status("digest")
    assert status is not None
    assert "has not ended" in status.reason


async def test_a_person_suspends_it_and_resumes_it_and_nothing_is_made_up() -> None:
    rig = Rig(make_spec(catch_up=CatchUp(CatchUpMode.ALL)))
    await rig.run_to("10:01:00")
    await rig.memory.suspend_cron(QUEUE, "digest", by="ann", reason="a repair")
    await rig.run_to("10:30:10")
    assert await rig.verdicts() == {ENQUEUED: 1}

    await rig.memory.resume_cron(QUEUE, "digest")
    await rig.run_to("10:32:00")

    assert await rig.jobs() == [f"digest-{unix(f'10:{m}:00')}" for m in ("01", "31", "32")]


async def test_a_suspension_until_a_moment_ends_by_itself_with_the_fire_of_that_moment() -> None:
    rig = Rig(make_spec())
    await rig.run_to("10:01:00")
    await rig.memory.suspend_cron(QUEUE, "digest", by="ann", reason="x", until=at("10:05:00"))

    await rig.run_to("10:06:00")

    assert await rig.jobs() == [f"digest-{unix(f'10:{m}:00')}" for m in ("01", "05", "06")]


async def test_a_leader_that_takes_over_obeys_a_persons_suspension() -> None:
    spec = make_spec(catch_up=CatchUp(CatchUpMode.ALL))
    rig = Rig(spec)
    await rig.run_to("10:01:00")
    await rig.memory.suspend_cron(QUEUE, "digest", by="ann", reason="a repair")
    await rig.leadership.resign()
    second = rig.another(spec)

    await second.outage_to("12:30:10")
    await second.run_to("12:31:30")
    assert await second.verdicts() == {ENQUEUED: 1}
    await second.memory.resume_cron(QUEUE, "digest")
    await second.run_to("12:32:00")

    assert await second.verdicts() == {ENQUEUED: 2}


async def test_an_edit_while_a_person_has_it_suspended_resumes_nothing() -> None:
    rig = Rig(make_spec())
    await rig.run_to("10:01:00")
    await rig.memory.suspend_cron(QUEUE, "digest", by="ann", reason="a repair")
    rig.change(rules=FireRules(Every(timedelta(seconds=20))))

    await rig.run_to("10:03:00")

    assert await rig.verdicts() == {ENQUEUED: 1}
