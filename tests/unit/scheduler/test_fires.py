"""One scheduler: fires become jobs, once, under every policy a CronTask may have."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.unit.scheduler.rig import QUEUE, START, Rig, at, make_spec, unix
from tidework.model.fire import ConcurrencyPolicy, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.model.schedule import Every
from tidework.scheduler.due import CatchUp, CatchUpMode, FireRules

ENQUEUED, SKIPPED = Verdict.ENQUEUED, Verdict.SKIPPED_OVERLAP


async def test_a_due_fire_becomes_one_job_with_all_that_the_crontask_says() -> None:
    spec = make_spec(
        params={"to": "all"}, priority=2, max_attempts=7, timeout=timedelta(seconds=90)
    )
    rig = Rig(spec)
    await rig.settle()
    assert await rig.jobs() == []

    await rig.run_to("10:01:00")

    assert await rig.jobs() == [f"digest-{unix('10:01:00')}"]
    record = await rig.memory.get_job(QUEUE, f"digest-{unix('10:01:00')}")
    assert record is not None
    assert record.cron == "digest"
    body = json.loads(record.body)
    assert body == {
        "v": 1,
        "id": f"digest-{unix('10:01:00')}",
        "task": "send_digest",
        "params": {"to": "all"},
        "priority": 2,
        "created_at": body["created_at"],
        "available_at": unix("10:01:00"),
        "max_attempts": 7,
        "timeout": 90.0,
    }
    assert 0 <= body["created_at"] - unix("10:01:00") < 1
    assert rig.scheduler.counters.lateness.count == 1


async def test_the_wait_reaches_to_the_next_fire() -> None:
    rig = Rig(make_spec())
    await rig.settle()
    rig.clock.advance(at("10:00:59") - rig.clock.now() + timedelta(milliseconds=600))

    assert await rig.scheduler.tick() == timedelta(milliseconds=400)


async def test_nothing_fires_for_the_time_before_a_crontask_existed() -> None:
    rig = Rig(make_spec("0 * * * *"))

    await rig.settle()

    assert (await rig.record()).watermark == int(START.timestamp())
    assert await rig.jobs() == []


async def test_fires_go_on_minute_by_minute() -> None:
    rig = Rig(make_spec())

    await rig.run_to("10:05:30")

    assert await rig.jobs() == [f"digest-{unix(f'10:0{m}:00')}" for m in range(1, 6)]
    assert await rig.verdicts() == {ENQUEUED: 5}
    assert rig.scheduler.counters.verdicts == {ENQUEUED: 5}


async def test_crontasks_of_several_queues_and_schedules() -> None:
    other = QueueName("shop", "reports")
    fast = make_spec(uid="fast", queue=other)
    spec = make_spec("*/5 * * * *", uid="slow")
    rig = Rig(fast, spec)

    await rig.run_to("10:05:01")

    assert await rig.jobs() == [f"slow-{unix('10:05:00')}"]
    page = await rig.memory.list_jobs(other, JobState.READY)
    assert len(page.ids) == 5


async def test_allow_runs_beside_each_other() -> None:
    rig = Rig(make_spec(policy=ConcurrencyPolicy.ALLOW))

    await rig.run_to("10:03:00")

    assert len(await rig.jobs(JobState.READY)) == 3


async def test_forbid_skips_until_the_run_has_ended() -> None:
    rig = Rig(make_spec(policy=ConcurrencyPolicy.FORBID))
    await rig.run_to("10:01:00")
    running = await rig.claim()
    await rig.run_to("10:03:00")
    assert await rig.verdicts() == {ENQUEUED: 1, SKIPPED: 2}

    await rig.complete(running)
    await rig.run_to("10:04:00")

    assert await rig.verdicts() == {ENQUEUED: 2, SKIPPED: 2}
    assert await rig.jobs() == [f"digest-{unix('10:01:00')}", f"digest-{unix('10:04:00')}"]


async def test_replace_cancels_the_running_one_and_holds_the_new_one() -> None:
    rig = Rig(make_spec(policy=ConcurrencyPolicy.REPLACE))
    await rig.run_to("10:01:00")
    running = await rig.claim()

    await rig.run_to("10:02:00")

    old = await rig.memory.get_job(QUEUE, running[0].id)
    assert old is not None
    assert old.cancel_requested
    assert await rig.claim() == []
    await rig.complete(running)
    assert [found.id for found in await rig.claim()] == [f"digest-{unix('10:02:00')}"]


async def test_max_runs_ends_it_and_raising_it_fires_nothing_of_the_past() -> None:
    rig = Rig(make_spec(max_runs=2))
    await rig.run_to("10:05:00")
    assert len(await rig.jobs()) == 2
    status = await rig.scheduler.status("digest")
    assert status is not None
    assert status.reason == "finished: maxRuns 2 reached"
    assert status.next_fires == ()

    rig.change(max_runs=3)
    await rig.run_to("10:05:59")
    assert len(await rig.jobs()) == 2
    await rig.run_to("10:08:00")

    assert await rig.jobs() == [f"digest-{unix(f'10:0{m}:00')}" for m in (1, 2, 6)]


async def test_max_runs_holds_for_the_next_leader_too() -> None:
    rig = Rig(make_spec(max_runs=2))
    await rig.run_to("10:02:00")
    await rig.leadership.resign()
    second = rig.another()

    await second.run_to("10:06:00")

    assert len(await rig.jobs()) == 2


async def test_end_time_ends_it_and_extending_it_fires_nothing_of_the_past() -> None:
    rig = Rig(make_spec(end=at("10:02:00")))
    await rig.run_to("10:06:30")
    assert len(await rig.jobs()) == 2
    status = await rig.scheduler.status("digest")
    assert status is not None
    assert status.reason == "finished: endTime 2026-01-05T10:02:00+00:00 has passed"

    spec = rig.registry.specs["digest"]
    rig.change(rules=FireRules(spec.rules.schedule, end=at("10:07:00")))
    await rig.run_to("10:09:00")

    assert await rig.jobs() == [f"digest-{unix(f'10:0{m}:00')}" for m in (1, 2, 7)]


async def test_start_time_is_waited_for() -> None:
    rig = Rig(make_spec(start=at("10:03:00")))

    await rig.run_to("10:02:59")
    status = await rig.scheduler.status("digest")
    assert status is not None
    assert status.reason == "starts at startTime 2026-01-05T10:03:00+00:00"
    assert await rig.jobs() == []
    await rig.run_to("10:04:00")

    assert len(await rig.jobs()) == 2


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


@pytest.mark.parametrize("mode", list(CatchUpMode))
@pytest.mark.parametrize("missed", [0, 1, 50, 5000])
@pytest.mark.parametrize("deadline", [None, timedelta(seconds=30)])
async def test_an_outage_ends_with_one_verdict_per_fire(
    mode: CatchUpMode, missed: int, deadline: timedelta | None
) -> None:
    rig = Rig(make_spec(catch_up=CatchUp(mode), deadline=deadline))
    await rig.settle()

    rig.clock.advance(timedelta(minutes=missed, seconds=10))
    await rig.settle()

    verdicts = await rig.verdicts()
    assert sum(verdicts.values()) == missed
    assert (await rig.record()).watermark == (
        unix("10:00:00") + 60 * missed if missed else int(START.timestamp())
    )
    runs = verdicts.get(ENQUEUED, 0)
    all_runs = missed if deadline is None else min(missed, 1)
    assert (
        runs
        == {
            CatchUpMode.LATEST: min(missed, 1),
            CatchUpMode.ALL: all_runs,
            CatchUpMode.NONE: missed if missed <= 1 else 0,
        }[mode]
    )
    assert len(await rig.jobs()) == runs


async def test_a_fire_made_up_for_waits_in_the_queue_from_now_on() -> None:
    rig = Rig(make_spec("0 * * * *"))
    await rig.settle()

    await rig.outage_to("15:20:00")

    [job_id] = await rig.jobs(JobState.READY)
    record = await rig.memory.get_job(QUEUE, job_id)
    assert record is not None
    assert record.available_at == at("15:20:00")
    assert job_id == f"digest-{unix('15:00:00')}"
    assert rig.scheduler.counters.lateness.count == 0


async def test_a_long_outage_of_some_does_not_keep_others_waiting() -> None:
    """Bounded rounds: fires on time go before those to be made up for."""
    rig = Rig(*(make_spec(uid=f"many-{n}", catch_up=CatchUp(CatchUpMode.NONE)) for n in range(30)))
    await rig.settle()
    fresh = make_spec("5 18 * * *", uid="fresh", created=at("18:04:58"))
    rig.clock.advance(at("18:04:58") - rig.clock.now())
    rig.registry.replace([*rig.registry.specs.values(), fresh])
    await rig.leadership.tick()
    for _ in range(6):
        await rig.scheduler.tick()
    rig.clock.advance(timedelta(seconds=2))

    await rig.scheduler.tick()

    assert await rig.jobs() == [f"fresh-{unix('18:05:00')}"]
    open_fires = unix("18:04:00") - (await rig.record("many-29")).watermark
    assert open_fires > 0, "the outage was over before the fire: the test shows nothing"
    await rig.settle()
    assert (await rig.record("many-29")).watermark == unix("18:05:00")


async def test_a_lost_record_starts_at_the_last_fire_that_is_remembered() -> None:
    spec = make_spec(
        catch_up=CatchUp(CatchUpMode.ALL), created=at("09:00:00"), last_scheduled=at("09:57:00")
    )
    rig = Rig(spec)

    await rig.settle()

    assert await rig.jobs() == [f"digest-{unix(t)}" for t in ("09:58:00", "09:59:00", "10:00:00")]


async def test_a_record_lost_under_way_starts_at_what_was_decided() -> None:
    rig = Rig(make_spec(created=at("09:00:00"), catch_up=CatchUp(CatchUpMode.ALL)))
    await rig.run_to("10:02:30")
    before = await rig.jobs()
    term = rig.leadership.term(QUEUE)
    assert term is not None
    await rig.memory.put_crontasks(QUEUE, term, {})
    assert await rig.memory.cron_record(QUEUE, "digest") is None

    await rig.run_to("10:03:10")

    assert await rig.jobs() == [*before, f"digest-{unix('10:03:00')}"]


async def test_a_creation_in_the_future_does_not_silence_a_crontask() -> None:
    rig = Rig(make_spec(created=at("12:00:00")))

    await rig.run_to("10:01:00")

    assert len(await rig.jobs()) == 1
