"""CronTask documents: what they may say, and the schedules that come out of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.documents import crontask
from tidework.manifests import CatchUp, CronTask, ManifestErrors
from tidework.manifests.timing import summary_of
from tidework.model.fire import ConcurrencyPolicy
from tidework.model.identity import QueueName
from tidework.model.schedules.cron import DstPolicy, Every, parse_cron


def test_a_short_document_gets_the_defaults_of_the_product() -> None:
    spec = crontask().spec

    assert (spec.time_zone, spec.dst, spec.suspend) == ("UTC", DstPolicy.ONCE, False)
    assert spec.concurrency_policy is ConcurrencyPolicy.ALLOW
    assert (spec.catch_up, spec.catch_up_limit) == (CatchUp.LATEST, 100)
    assert spec.starting_deadline_seconds is None
    assert spec.catch_up_window_seconds is None
    assert (spec.priority, spec.max_attempts, spec.timeout_seconds) == (5, None, None)
    assert (spec.start_time, spec.end_time, spec.max_runs) == (None, None, None)
    assert spec.params == {}


def test_every_field_is_read() -> None:
    task = crontask(
        params={"to": "all", "deep": {"list": [1, None, 2.5]}},
        schedule="30 2 * * 1-5",
        timeZone="Europe/Berlin",
        dst="Clock",
        suspend=True,
        concurrencyPolicy="Replace",
        startingDeadlineSeconds=0,
        catchUp="None",
        catchUpLimit=5,
        catchUpWindowSeconds=600,
        startTime="2030-01-31T06:00:00+01:00",
        endTime="2031-01-31T06:00:00Z",
        maxRuns=3,
        priority=0,
        maxAttempts=2,
        timeoutSeconds=90,
    )

    spec = task.spec
    # Null is data within params.
    assert spec.params == {"to": "all", "deep": {"list": [1, None, 2.5]}}
    assert (spec.suspend, spec.concurrency_policy) == (True, ConcurrencyPolicy.REPLACE)
    assert (spec.catch_up, spec.catch_up_limit) == (CatchUp.NONE, 5)
    assert (spec.starting_deadline_seconds, spec.catch_up_window_seconds) == (0, 600)
    assert spec.start_time == datetime(2030, 1, 31, 5, tzinfo=UTC)
    assert (spec.max_runs, spec.priority) == (3, 0)
    assert (spec.max_attempts, spec.timeout_seconds) == (2, 90)
    assert task.queue_name == QueueName("default", "emails")
    assert task.to_schedule() == parse_cron(
        "30 2 * * 1-5", time_zone="Europe/Berlin", dst=DstPolicy.CLOCK
    )


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("1s", timedelta(seconds=1)),
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=90)),
        ("1d", timedelta(days=1)),
        ("2d3h4m5s", timedelta(days=2, hours=3, minutes=4, seconds=5)),
        ("3650d", timedelta(days=3650)),
    ],
)
def test_intervals(text: str, interval: timedelta) -> None:
    assert crontask(every=text).to_schedule() == Every(interval)


@pytest.mark.parametrize("text", ["", "90", "5 m", "1m1h", "1.5h", "-5m", "5M", "5min", "\u0665m"])
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ManifestErrors) as caught:
        crontask(every=text)

    assert f"spec.every: {text!r}: is not an interval; write it as 90s" in str(caught.value)


@pytest.mark.parametrize("text", ["0s", "0d0h", "3651d", "99999999999999999999d"])
def test_intervals_have_bounds(text: str) -> None:
    with pytest.raises(ManifestErrors, match="has to lie between 1s and 3650d"):
        crontask(every=text)


def test_an_interval_counts_from_the_start_time() -> None:
    schedule = crontask(every="1h", startTime="2030-01-31T06:07:08Z").to_schedule()

    after = datetime(2030, 1, 31, 9, tzinfo=UTC)
    assert schedule.next(after) == datetime(2030, 1, 31, 9, 7, 8, tzinfo=UTC)


def fires(document: CronTask, after: str, count: int) -> list[str]:
    """The next fires, in UTC, from an instant in UTC on."""
    schedule = document.to_schedule()
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = schedule.between(moment, datetime(2100, 1, 1, tzinfo=UTC), count)
    return [f"{fire:%Y-%m-%d %H:%M:%S}" for fire in found]


def test_a_phase_shifts_an_interval_from_wherever_it_counts() -> None:
    plain = crontask(every="1h", phase="15m")
    assert fires(plain, "2030-01-31T06:00:00", 2) == ["2030-01-31 06:15:00", "2030-01-31 07:15:00"]
    from_start = crontask(every="1h", phase="15m", startTime="2030-01-31T06:07:08Z")
    assert fires(from_start, "2030-01-31T06:10:00", 1) == ["2030-01-31 06:22:08"]


def test_h_spreads_by_namespace_and_name() -> None:
    spread = {
        fires(crontask(name=f"task-{number}", **fields), "2030-01-31T06:00:00", 1)[0]
        for number in range(20)
        for fields in ({"every": "1h", "phase": "H"}, {"schedule": "H * * * *"})
    }
    assert len(spread) > 20
    assert crontask(every="1h", phase="H") == crontask(every="1h", phase="H")


def test_several_schedules_fire_once_where_they_meet() -> None:
    task = crontask(schedules=["0 6 * * *", "0 */3 * * 4", "@monthly"])
    assert fires(task, "2030-01-31T00:00:00", 4) == [
        "2030-01-31 03:00:00",
        "2030-01-31 06:00:00",
        "2030-01-31 09:00:00",
        "2030-01-31 12:00:00",
    ]


def test_an_instant_fires_once() -> None:
    task = crontask(at="2030-01-31T06:00:00+01:00")
    assert fires(task, "2026-01-01T00:00:00", 3) == ["2030-01-31 05:00:00"]
    assert fires(task, "2030-01-31T05:00:00", 3) == []


def test_excluded_days_are_those_of_the_zone() -> None:
    task = crontask(every="12h", timeZone="Asia/Shanghai", exclude=["10-01..10-07"])
    assert fires(task, "2030-09-30T00:00:00", 2) == ["2030-09-30 12:00:00", "2030-10-08 00:00:00"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"schedule": "0 6 * * *"}, "0 6 * * *"),
        ({"schedules": ["0 6 * * *", "@hourly"]}, "0 6 * * *; @hourly"),
        ({"every": "90s"}, "every 90s"),
        ({"every": "90s", "phase": "H"}, "every 90s phase H"),
        ({"at": "2030-01-31T06:00:00Z"}, "at 2030-01-31T06:00:00Z"),
        ({"schedule": "@daily", "exclude": ["12-25"]}, "@daily (not on 1 excluded)"),
    ],
)
def test_a_summary_for_lists(fields: dict[str, Any], text: str) -> None:
    assert summary_of(fields) == text


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        (
            {"schedule": "61 * * * *"},
            "spec.schedule: '61 * * * *' at position 0: 61 is out of range; the minute field",
        ),
        ({"schedule": "TZ=UTC * * * * *"}, "name the zone in the field timeZone"),
        ({"timeZone": "Mars/Base"}, "spec.timeZone: 'Mars/Base': unknown time zone; use an IANA"),
        ({"schedule": "* * * * *", "timeZone": "Local"}, "spec.timeZone: 'Local'"),
        (
            {"schedule": "* * * * *", "every": "5m"},
            "spec.schedule: schedule and every are given; keep exactly one of them",
        ),
        (
            {"schedule": None},
            "spec.schedule: is required, or schedules, every or at: give exactly one",
        ),
        ({"every": 90}, "spec.every: has to be text, not 90"),
        ({"timeZone": "Europe/Berlin"}, "spec.timeZone: every and at have no zone"),
        ({"schedules": []}, "spec.schedules: needs 1 or more entries"),
        ({"schedules": ["0 6 * * *"] * 21}, "spec.schedules: may have 20 entries at most"),
        (
            {"schedules": ["0 6 * * *", "0 25 * * *"]},
            "spec.schedules[1]: '0 25 * * *' at position 2: 25 is out of range",
        ),
        ({"schedule": "0 0 H(30-31) 2 *"}, "spec.schedule: '0 0 H(30-31) 2 *' at position 4: no"),
        ({"every": "5m", "phase": "5m"}, "spec.phase: '5m': the phase reaches the next fire"),
        ({"every": "5m", "phase": "-1s"}, "spec.phase: '-1s': is not an interval"),
        ({"every": "5m", "phase": ""}, "spec.phase: '': is not an interval"),
        ({"schedule": "* * * * *", "phase": "5m"}, "spec.phase: shifts an interval; remove it"),
        ({"at": "2030-01-31"}, "spec.at: has to be a time"),
        ({"at": "2030-01-31T06:00:00"}, "spec.at: has to be a time with its zone"),
        ({"at": "2030-01-31T06:00:00.5Z"}, "spec.at: has a fraction of a second"),
        (
            {"at": "2030-01-31T06:00:00Z", "exclude": ["12-25"]},
            "spec.exclude: an instant (at) has no days to leave out",
        ),
        ({"every": "5m", "exclude": ["25.12."]}, "spec.exclude[0]: '25.12.' is refused: write"),
        ({"every": "5m", "exclude": ["02-30"]}, "spec.exclude[0]: '02-30': there is no such day"),
        (
            {"schedule": "0 0 25 12 *", "exclude": ["12-24..12-26"]},
            "spec.exclude: '12-24..12-26': every fire falls on an excluded day",
        ),
        ({"every": "1h", "exclude": ["03-01..02-29"]}, "every day of the year is excluded"),
        ({"concurrencyPolicy": "forbid"}, "has to be 'Allow', 'Forbid' or 'Replace'"),
        ({"catchUp": "latest"}, "has to be 'Latest', 'All' or 'None', not \"latest\""),
        ({"dst": "once"}, "spec.dst: has to be 'Once' or 'Clock', not \"once\""),
        ({"queue": "E-Mails"}, "spec.queue: 'E-Mails' is refused: use at most 63 characters"),
        ({"task": "a b"}, "spec.task: 'a b' is refused: use 1 to 200 characters"),
        ({"priority": 10}, "spec.priority: has to be 9 or less, not 10"),
        ({"maxAttempts": 0}, "spec.maxAttempts: has to be 1 or more, not 0"),
        ({"startingDeadlineSeconds": -1}, "spec.startingDeadlineSeconds: has to be 0 or more"),
        ({"startTime": "2030-01-31T06:00:00"}, "spec.startTime: has to be a time with its zone"),
        ({"startTime": "tomorrow"}, "has to be a time such as 2030-01-31T06:00:00Z"),
        ({"startTime": "2030-01-31T06:00:00.5Z"}, "has a fraction of a second"),
        (
            {"startTime": "2030-01-31T06:00:00Z", "endTime": "2030-01-31T06:00:00Z"},
            "spec.endTime: is not after startTime",
        ),
        ({"params": [1]}, "spec.params: has to be a mapping, not [1]"),
        ({"params": {"a": "x" * 300_000}}, "bytes of JSON, the limit is 262144"),
        ({"jitterSeconds": 5}, "spec.jitterSeconds: unknown field"),
        ({"timezone": "UTC"}, "spec.timezone: unknown field; did you mean timeZone?"),
    ],
)
def test_what_is_not_served_is_refused(fields: dict[str, Any], fault: str) -> None:
    with pytest.raises(ManifestErrors) as caught:
        crontask(**fields)

    assert len(caught.value.errors) == 1
    assert fault in str(caught.value)


def test_faults_between_fields_are_told_together() -> None:
    with pytest.raises(ManifestErrors) as caught:
        crontask(
            schedule="* * * * *",
            every="5m",
            timeZone="Europe/Berlin",
            startTime="2030-01-31T06:00:00Z",
            endTime="2029-01-31T06:00:00Z",
        )

    fields = [error.field for error in caught.value.errors]
    assert fields == ["spec.schedule", "spec.timeZone", "spec.endTime"]
