"""One scheduler: fires become jobs, once, under every policy a CronTask may have."""

from __future__ import annotations

import json
import logging
from datetime import timedelta

import pytest

from tests.unit.scheduler.rig import QUEUE, START, Rig, at, make_spec, unix
from tidework.model.fire import ConcurrencyPolicy, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.model.schedules.composed import AnyOf
from tidework.model.schedules.cron import parse_cron, tzdata_version
from tidework.scheduler.due import FireRules

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


async def test_the_log_names_the_zone_data_once(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(make_spec())
    with caplog.at_level(logging.INFO, logger="tidework.scheduler.scheduler"):
        await rig.settle()
        await rig.run_to("10:01:00")
    told = [text for text in caplog.messages if "tzdata" in text]
    assert told == [f"fire times by the time zones of tzdata {tzdata_version()}"]


async def test_fires_of_seconds_and_of_several_schedules_get_one_verdict_each() -> None:
    often, also = parse_cron("*/20 * * * * *"), parse_cron("*/30 * * * * *")
    rig = Rig(make_spec(rules=FireRules(AnyOf((often, also)))))
    await rig.settle()

    await rig.run_to("10:01:00")

    seconds = ("10:00:20", "10:00:30", "10:00:40", "10:01:00")
    assert await rig.jobs() == [f"digest-{unix(second)}" for second in seconds]


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
