"""CronTasks of a cluster: from their documents into the registry, and judged on the way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.operator.crontask_rig import QUEUE, CronRig, moment
from tidework.model.job import JobState
from tidework_operator.cluster import Kind


@pytest.fixture
def rig() -> CronRig:
    rig = CronRig()
    rig.put_queue()
    return rig


async def test_nothing_is_touched_before_the_inventory_is_complete(rig: CronRig) -> None:
    rig.put()

    await rig.reconciler.tick()
    assert rig.registry.version == 1
    assert rig.cluster.calls == []

    await rig.settle()
    assert [spec.name for spec in rig.registry.specs.values()] == ["nightly"]
    assert rig.registry.queues == {QUEUE}


async def test_the_first_round_has_fires_go_on_before_anybody_is_told(rig: CronRig) -> None:
    rig.put(schedule="61 * * * *")
    await rig.relist()

    assert await rig.reconciler.tick() == timedelta(0)

    assert rig.registry.version == 2
    assert rig.cluster.calls == []


async def test_a_bad_schedule_is_told_with_its_position_and_remedy(rig: CronRig) -> None:
    rig.put(schedule="0 25 * * *")

    await rig.run(1)

    status, reason, message = rig.condition("ScheduleValid")
    assert (status, reason) == ("False", "ScheduleInvalid")
    assert message == (
        "spec.schedule: '0 25 * * *' at position 2: 25 is out of range; the hour field takes 0-23"
    )
    assert rig.condition("Ready") == ("False", "ScheduleInvalid", f"nothing fires: {message}")
    assert rig.condition("QueueFound")[0] == "True"
    assert rig.registry.specs == {}
    assert rig.told() == [("Warning", "ScheduleInvalid")]
    assert rig.status()["nextScheduleTimes"] == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"schedules": ["0 6 * * *", "0 25 * * *"]}, "spec.schedules[1]: '0 25 * * *' at pos"),
        ({"schedule": "0 0 H(30-31) 2 *"}, "spec.schedule: '0 0 H(30-31) 2 *' at position 4: no"),
        ({"every": "5m", "phase": "10m"}, "spec.phase: '10m': the phase reaches the next fire"),
        ({"every": "5m", "exclude": ["02-30"]}, "spec.exclude[0]: '02-30': there is no such day"),
        (
            {"schedule": "0 0 25 12 *", "exclude": ["12-25"]},
            "spec.exclude: '12-25': every fire falls on an excluded day",
        ),
        ({"schedule": "0 6 * * *", "timeZone": "Mars/Base"}, "spec.timeZone: 'Mars/Base': unkn"),
    ],
)
async def test_whatever_is_wrong_with_when_it_fires_is_about_the_schedule(
    rig: CronRig, spec: dict[str, Any], message: str
) -> None:
    rig.put(**spec)

    await rig.run(1)

    status, reason, said = rig.condition("ScheduleValid")
    assert (status, reason) == ("False", "ScheduleInvalid")
    assert said.startswith(message)


async def test_every_form_of_schedule_is_served(rig: CronRig) -> None:
    rig.put("seconds", schedule="*/10 * * * * *")
    rig.put("spread", schedule="H H(0-5) * * *")
    rig.put("listed", schedules=["0 12 L * *", "0 13 * * FRI#2"])
    rig.put("phased", every="1h", phase="7m")
    rig.put("once", at="2026-01-05T12:34:56Z")
    rig.put("off", schedule="0 12 * * *", timeZone="Asia/Shanghai", exclude=["01-05..01-09"])

    await rig.run(1)

    following = {
        found["metadata"]["name"]: found["status"]["nextScheduleTimes"] for found in rig.crontasks()
    }
    assert following.pop("spread")
    assert following.pop("once") == ["2026-01-05T12:34:56Z"]
    assert {name: times[0] for name, times in following.items()} == {
        "seconds": "2026-01-05T10:00:10Z",
        "listed": "2026-01-09T13:00:00Z",
        "phased": "2026-01-05T10:07:00Z",
        "off": "2026-01-10T04:00:00Z",
    }


async def test_what_else_is_wrong_is_not_put_on_the_schedule(rig: CronRig) -> None:
    rig.put(params={"text": "x" * 300_000})

    await rig.run(1)

    assert rig.condition("ScheduleValid")[:2] == ("Unknown", "SpecInvalid")
    status, reason, message = rig.condition("Ready")
    assert (status, reason) == ("False", "SpecInvalid")
    assert "spec.params: " in message
    assert "the limit is 262144" in message


async def test_a_missing_queue_is_told_with_those_that_there_are(rig: CronRig) -> None:
    rig.put_queue("reports")
    rig.put(queue="emials")

    await rig.run(1)

    status, reason, message = rig.condition("QueueFound")
    assert (status, reason) == ("False", "QueueMissing")
    assert "no TaskQueue 'emials' in namespace shop (did you mean emails?)" in message
    assert "create it, or correct spec.queue" in message
    assert rig.condition("Ready")[:2] == ("False", "QueueMissing")
    assert rig.registry.specs == {}
    assert rig.told() == [("Warning", "QueueMissing")]


async def test_a_queue_that_comes_is_noticed(rig: CronRig) -> None:
    rig.put(queue="reports")
    await rig.run(1)

    rig.put_queue("reports")
    await rig.run(6)

    assert rig.condition("QueueFound")[0] == "True"
    assert rig.condition("Ready")[:2] == ("True", "Scheduled")
    assert len(rig.registry.specs) == 1


async def test_a_timeout_above_that_of_the_queue_is_told(rig: CronRig) -> None:
    rig.put_queue(hardTimeoutSeconds=60)
    rig.put(timeoutSeconds=90)

    await rig.run(2)

    status, _, message = rig.condition("QueueFound")
    assert status == "True"
    assert "attempts end after 60 s: timeoutSeconds 90 is above its hardTimeoutSeconds" in message

    rig.put_queue(hardTimeoutSeconds=90)
    await rig.run(6)
    assert rig.condition("QueueFound")[2] == "TaskQueue emails is there"


async def test_an_edit_is_taken_up_and_told_once(rig: CronRig) -> None:
    rig.put(schedule="0 25 * * *")
    await rig.run(1)

    rig.put(schedule="0 20 * * *")
    await rig.run(6)

    assert rig.condition("ScheduleValid")[0] == "True"
    assert rig.status()["observedGeneration"] == 2
    assert rig.status()["nextScheduleTimes"][0] == moment("20:00:00")
    assert rig.told() == [("Warning", "ScheduleInvalid")]
    assert rig.writes() == 2


async def test_a_schedule_that_was_mended_does_not_fire_what_was_due_meanwhile(
    rig: CronRig,
) -> None:
    rig.put(catchUp="All")
    await rig.run(602)
    assert rig.status()["verdicts"]["enqueued"] == 1

    rig.put(schedule="61 * * * *", catchUp="All")
    await rig.run(1300)
    assert rig.condition("Ready")[1] == "ScheduleInvalid"
    assert rig.status()["lastScheduleTime"] == moment("10:10:00")

    # Another leader, which never saw the good one, does not make up for them either.
    rig.reconciler = rig.make_reconciler()
    rig.put(catchUp="All")
    await rig.run(30)

    assert rig.condition("Ready")[:2] == ("True", "Scheduled")
    jobs = [*(await rig.memory.list_jobs(QUEUE, JobState.READY)).ids]
    assert len(jobs) == 1


async def test_a_deleted_crontask_leaves_the_registry(rig: CronRig) -> None:
    rig.put()
    rig.put("other")
    await rig.run(2)

    rig.cluster.remove(Kind.CRON_TASK, "shop", "nightly")
    await rig.run(2)

    assert [spec.name for spec in rig.registry.specs.values()] == ["other"]


async def test_one_that_is_being_deleted_fires_no_more(rig: CronRig) -> None:
    found = rig.put()
    await rig.run(2)

    found["metadata"]["deletionTimestamp"] = moment("10:00:02")
    rig.cluster.put(Kind.CRON_TASK, found)
    await rig.run(2)

    assert rig.registry.specs == {}


async def test_the_registry_is_left_alone_while_nothing_changes(rig: CronRig) -> None:
    rig.put()
    await rig.run(2)
    version = rig.registry.version

    await rig.run(1202)

    assert rig.status()["verdicts"]["enqueued"] == 2
    assert rig.registry.version == version


async def test_crontasks_of_a_queue_with_an_impossible_name_are_left_alone(rig: CronRig) -> None:
    rig.put_queue("not.a.label")
    rig.put(queue="not.a.label")

    await rig.run(1)

    assert rig.registry.queues == {QUEUE}
    assert rig.condition("Ready")[1] == "SpecInvalid"


@pytest.mark.parametrize("spec", [{}, {"queue": 5, "task": None}])
async def test_a_spec_that_cannot_be_read_at_all(rig: CronRig, spec: dict[str, Any]) -> None:
    metadata = {"namespace": "shop", "name": "nightly"}
    rig.cluster.put(Kind.CRON_TASK, {"metadata": metadata, "spec": spec})

    await rig.run(1)

    assert rig.condition("Ready")[0] == "False"
    assert rig.condition("QueueFound")[:2] == ("Unknown", "SpecInvalid")
