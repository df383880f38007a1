"""Remarks about steps: when they really fire, and what to write instead."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidework.cli.cron_given import Given
from tidework.cli.remarks.schedule import remarks
from tidework.manifests.timing import Timing

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def said_of(schedule: str) -> list[str]:
    timing = Timing(schedules=(schedule,))
    return remarks(Given(schedule, timing, "shop/nightly"), NOW)


@pytest.mark.parametrize(
    ("schedule", "fires", "instead"),
    [
        ("*/60 * * * *", "minute field names 0 alone", "write 0; for an interval of 60 minutes"),
        ("*/90 * * * *", "a step of 90 leads beyond 59", "minutes write every: 90m"),
        ("*/60 * * * * *", "second field names 0 alone", "write every: 60s"),
        ("0 */36 * * *", "hour field names 0 alone", "write every: 36h, counted from startTime"),
        ("0 0 */40 * *", "day-of-month field names 1 alone", "write 1; for an interval of 40 days"),
        ("0 0 1 */13 *", "month field names JAN alone", "write 1; there is no interval of months"),
        ("0 0 * * */7", "day-of-week field names SUN alone", "write 0; for an interval of 7 days"),
        ("10-20/15 * * * *", "names 10 alone, since a step of 15 leads beyond 20", "write 10;"),
        ("30/45 * * * *", "30/45 in the minute field names 30 alone", "write 30;"),
        ("*/60,30 * * * *", "*/60 in the minute field names 0 alone", "without the rest of"),
        ("H/60 * * * *", "H/60 in the minute field names ", "write H;"),
        ("H(0-9)/10 * * * *", "leads beyond 9", "write H(0-9);"),
    ],
)
def test_a_step_that_never_takes_effect(schedule: str, fires: str, instead: str) -> None:
    (remark,) = said_of(schedule)
    assert fires in remark
    assert instead in remark


@pytest.mark.parametrize(
    ("schedule", "fires", "instead"),
    [
        ("*/45 * * * *", "names 0, 45 and then starts again: the last gap is 15", "every: 45m"),
        ("*/45 * * * * *", "the last gap is 15 seconds instead of 45", "write every: 45s"),
        ("0-59/45 * * * *", "the last gap is 15 minutes instead of 45", "write every: 45m"),
        ("5/7 * * * *", "names 5, 12, 19, ..., 54", "write every: 7m"),
        ("H/7 * * * *", "H/7 in the minute field names ", "write every: 7m"),
        ("*/7 * * * *", "the last gap is 4 minutes instead of 7", "write every: 7m"),
        ("0 */5 * * *", "the last gap is 4 hours instead of 5", "write every: 5h, counted from"),
        ("0 */13 * * *", "the last gap is 11 hours instead of 13", "write every: 13h"),
        ("0 0 */2 * *", "the last gap is 1 day in some months instead of 2", "write every: 2d"),
        ("0 0 */14 * *", "the last gap is 1, 2 or 3 days in some months instead of 14", "14d"),
        ("0 0 1 */5 *", "JAN, JUN, NOV", "the last gap is 2 months instead of 5"),
        ("0 0 * * */2", "SUN, TUE, THU, SAT", "the last gap is 1 day instead of 2"),
        ("*/7 8-17 * * *", "the last gap is 4 minutes", "every: 7m keeps the interval, without"),
        ("*/7,3 * * * *", "*/7 in the minute field", "every: 7m keeps the interval, without"),
        ("0 6 */2 * FRIL", "the last gap is 1 day", "every: 2d keeps the interval, without"),
    ],
)
def test_a_step_that_restarts_unevenly(schedule: str, fires: str, instead: str) -> None:
    remark = next(each for each in said_of(schedule) if "last gap" in each)
    assert fires in remark
    assert instead in remark


@pytest.mark.parametrize(
    "schedule",
    [
        "*/1 * * * *",
        "0 0 */1 * *",
        "*/15 * * * *",
        "*/20 * * * * *",
        "0 */6 * * *",
        "1-23/2 * * * *",
        "0 1-23/2 * * *",
        "0 8-17/3 * * *",  # the bounds are meant
        "0 0 1 */3 *",
        "*/40,20 * * * *",  # */20 in other words
        "0,45 * * * *",  # no step
    ],
)
def test_what_is_even_or_bounded_is_not_remarked_on(schedule: str) -> None:
    assert said_of(schedule) == []


def test_each_step_of_a_schedule_is_remarked_on() -> None:
    minutes, hours = said_of("*/45 */13 * * *")
    assert "*/45 in the minute field" in minutes
    assert "*/13 in the hour field" in hours
