"""What becomes of the CronTasks of a cluster is told in their status: on change, and seldom."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from tests.support.logs import lines
from tests.unit.operator.crontask_rig import QUEUE, START, CronRig, moment
from tidework.model.job import JobState
from tidework_operator.cluster import Kind


@pytest.fixture
def rig() -> CronRig:
    rig = CronRig()
    rig.put_queue()
    return rig


async def test_a_served_crontask_says_when_it_fires(rig: CronRig) -> None:
    rig.put()

    await rig.run(3)

    status = rig.status()
    assert status["nextScheduleTimes"] == [
        moment(f"10:{minute}:00") for minute in (10, 20, 30, 40, 50)
    ]
    assert status["observedGeneration"] == 1
    assert status["verdicts"] == {
        "enqueued": 0,
        "skippedOverlap": 0,
        "missedDeadline": 0,
        "missedCatchUp": 0,
    }
    assert (status["active"], status["activeCount"]) == ([], 0)
    assert "lastScheduleTime" not in status
    assert rig.condition("Ready") == ("True", "Scheduled", "it fires as scheduled")
    assert rig.condition("ScheduleValid")[:2] == ("True", "ScheduleValid")
    assert rig.condition("QueueFound") == ("True", "QueueFound", "TaskQueue emails is there")
    assert status["conditions"][0]["type"] == "Ready"
    assert rig.writes() == 1
    assert rig.told() == []


async def test_a_fire_is_told_from_enqueue_to_its_end(rig: CronRig) -> None:
    found = rig.put()
    uid = found["metadata"]["uid"]
    fire = int(START.timestamp()) + 600

    await rig.run(602)
    status = rig.status()
    assert status["lastScheduleTime"] == moment("10:10:00")
    assert status["lastJob"] == f"{uid}-{fire}"
    assert status["lastResult"] == "ready"
    assert (status["active"], status["activeCount"]) == ([f"{uid}-{fire}"], 1)
    assert status["nextScheduleTimes"][0] == moment("10:20:00")
    assert status["verdicts"]["enqueued"] == 1

    claimed = await rig.claim()
    await rig.run(6)
    assert rig.status()["lastResult"] == "running"

    await rig.complete(claimed)
    await rig.run(6)
    assert rig.status()["lastResult"] == "succeeded"
    assert (rig.status()["active"], rig.status()["activeCount"]) == ([], 0)


async def test_an_idle_crontask_costs_no_write(rig: CronRig) -> None:
    rig.put(schedule="0 0 1 1 *")
    await rig.run(3)
    writes = rig.writes()

    await rig.run(200)

    assert rig.writes() == writes == 1


async def test_writes_of_a_busy_crontask_are_seconds_apart(rig: CronRig) -> None:
    rig.put(every="1s")
    await rig.run(3)
    before = rig.writes()

    await rig.run(60)

    assert 6 <= rig.writes() - before <= 12
    assert rig.status()["verdicts"]["enqueued"] >= 55


async def test_suspended_and_finished_are_wanted_states(rig: CronRig) -> None:
    rig.put(suspend=True)
    rig.put("once", every="10s", maxRuns=1)

    await rig.run(70)

    assert rig.condition("Ready")[:2] == ("True", "Suspended")
    assert rig.status()["nextScheduleTimes"] == []
    assert rig.condition("Ready", "once") == (
        "True",
        "Finished",
        "finished: maxRuns 1 reached",
    )


async def test_a_persons_suspension_is_told_within_a_minute_and_its_end_too(rig: CronRig) -> None:
    uid = rig.put()["metadata"]["uid"]
    await rig.run(3)
    await rig.memory.suspend_cron(QUEUE, uid, by="ann", reason="a repair")

    await rig.run(65)

    status, reason, message = rig.condition("Ready")
    assert (status, reason) == ("True", "Suspended")
    assert message.startswith("suspended by ann since ")
    assert message.endswith(": a repair")
    assert rig.status()["nextScheduleTimes"] == []

    await rig.memory.resume_cron(QUEUE, uid)
    await rig.run(65)

    assert rig.condition("Ready")[:2] == ("True", "Scheduled")
    assert len(rig.status()["nextScheduleTimes"]) == 5


async def test_a_run_in_the_way_is_named(rig: CronRig) -> None:
    rig.put(concurrencyPolicy="Forbid")

    await rig.run(1205)

    status, reason, message = rig.condition("Ready")
    assert (status, reason) == ("True", "Waiting")
    assert "has not ended; until then fires are skipped" in message
    assert rig.status()["verdicts"]["skippedOverlap"] == 1


async def test_a_manual_run_is_told_once(rig: CronRig) -> None:
    rig.put(run_now="now-1")
    await rig.run(8)

    run = rig.status()["runNow"]
    assert run["nonce"] == "now-1"
    assert await rig.memory.get_job(QUEUE, run["job"]) is not None
    assert rig.told() == [("Normal", "RunNow")]

    # Another leader tells nothing again.
    rig.reconciler = rig.make_reconciler()
    await rig.run(70)
    assert len(rig.told()) == 1

    rig.put(run_now="now-2")
    await rig.run(8)
    assert rig.status()["runNow"]["nonce"] == "now-2"
    assert len(rig.told()) == 2


async def test_redis_away_is_told_and_what_was_known_stays(rig: CronRig) -> None:
    rig.put()
    await rig.run(602)
    before = rig.status()

    rig.broker.away = True
    await rig.run(20)

    status, reason, message = rig.condition("Ready")
    assert (status, reason) == ("False", "RedisUnreachable")
    assert "Redis cannot be reached" in message
    for field in ("lastScheduleTime", "lastJob", "lastResult", "verdicts", "active"):
        assert rig.status()[field] == before[field]

    rig.broker.away = False
    await rig.run(20)
    assert rig.condition("Ready")[:2] == ("True", "Scheduled")


async def test_a_record_that_redis_lost_does_not_take_the_last_time_along(rig: CronRig) -> None:
    rig.put()
    await rig.run(602)
    await rig.complete(await rig.claim())
    await rig.run(6)
    assert rig.status()["lastResult"] == "succeeded"

    rig.memory = type(rig.memory)(rig.clock)
    rig.broker._broker = rig.memory
    await rig.leadership.resign()
    await rig.run(70)

    assert rig.status()["lastScheduleTime"] == moment("10:10:00")
    assert rig.status()["lastResult"] == "succeeded"


async def test_between_two_leaders_the_status_stands(rig: CronRig) -> None:
    rig.put()
    await rig.run(3)
    writes, before = rig.writes(), rig.status()

    await rig.leadership.resign()
    rig.reconciler = rig.make_reconciler()
    for _ in range(10):
        await rig.relist()
        await rig.reconciler.tick()
        rig.clock.advance(timedelta(seconds=1))

    assert rig.writes() == writes
    assert rig.status() == before


async def test_the_api_server_away_stops_no_fire(
    rig: CronRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.put(every="10s")
    rig.put("other", every="10s")
    await rig.run(3)

    rig.cluster.away = True
    with caplog.at_level(logging.WARNING):
        for _ in range(60):
            await rig.reconciler.tick()
            await rig.scheduler.tick()
            rig.clock.advance(timedelta(seconds=1))
    assert len((await rig.memory.list_jobs(QUEUE, JobState.READY)).ids) >= 10
    assert len(lines(caplog, "status_not_written")) == 1
    # It is left alone for a while after each refusal.
    assert rig.reconciler.reporter.failures <= 12

    rig.cluster.away = False
    await rig.run(8)
    assert rig.status()["verdicts"]["enqueued"] >= 5
    assert rig.status("other")["verdicts"]["enqueued"] >= 5


@pytest.mark.parametrize("status", [404, 409, 422])
async def test_an_object_that_is_gone_holds_up_no_other(rig: CronRig, status: int) -> None:
    rig.put("a")
    rig.put("b")
    rig.cluster.fail("patch", Kind.CRON_TASK, status=status)

    await rig.run(1)
    assert [bool(rig.status(name)) for name in ("a", "b")].count(True) == 1

    await rig.run(6)
    assert rig.status("a")
    assert rig.status("b")


async def test_an_edit_does_not_wait_for_a_crowd(rig: CronRig) -> None:
    for number in range(150):
        rig.put(f"cron-{number:03}", every="60s")
    await rig.run(4)
    rig.clock.advance(timedelta(seconds=60))
    await rig.settle()

    rig.put("cron-149", every="120s")
    await rig.run(1)

    assert rig.status("cron-149")["observedGeneration"] == 2
    behind = [found for found in rig.crontasks() if "lastScheduleTime" not in found["status"]]
    assert behind

    await rig.run(10)
    behind = [found for found in rig.crontasks() if "lastScheduleTime" not in found["status"]]
    assert behind == []


async def test_what_we_wrote_counts_until_the_watch_has_told_of_it(rig: CronRig) -> None:
    rig.put(schedule="61 * * * *")
    await rig.relist()
    for _ in range(20):
        await rig.reconciler.tick()
        rig.clock.advance(timedelta(seconds=10))

    assert rig.writes() == 1


async def test_the_status_of_a_deleted_one_does_not_go_to_its_successor(rig: CronRig) -> None:
    rig.put(schedule="61 * * * *")
    await rig.relist()
    await rig.reconciler.tick()
    rig.cluster.remove(Kind.CRON_TASK, "shop", "nightly")
    rig.put(schedule="0 6 * * *")

    rig.clock.advance(timedelta(seconds=1))
    await rig.reconciler.tick()
    assert rig.writes() == 1
    assert rig.status() == {}

    await rig.run(8)
    assert rig.condition("Ready")[:2] == ("True", "Scheduled")
