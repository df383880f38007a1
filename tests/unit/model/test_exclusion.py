"""Excluded days: how they are written, and which they are."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from tidework.errors import ScheduleError
from tidework.model.schedules.exclusion import Exclusions, parse_exclusions


def days_of(exclusions: Exclusions, year: int) -> set[date]:
    """All excluded days of a year."""
    days = (date(year, 1, 1) + timedelta(days=number) for number in range(366))
    return {day for day in days if day.year == year and exclusions.around(day) is not None}


def test_every_form() -> None:
    found = parse_exclusions(["2026-12-24..2027-01-02", "2026-05-01", "12-31..01-01", "02-29"])
    assert days_of(found, 2026) == {
        date(2026, 1, 1),
        date(2026, 5, 1),
        *(date(2026, 12, day) for day in range(24, 32)),
    }
    assert days_of(found, 2027) == {date(2027, 1, 1), date(2027, 1, 2), date(2027, 12, 31)}
    assert days_of(found, 2028) == {date(2028, 1, 1), date(2028, 2, 29), date(2028, 12, 31)}


def test_stretches_over_29_february_and_over_the_end_of_the_year() -> None:
    found = parse_exclusions(["02-27..03-02", "12-30..01-02"])
    assert len(days_of(found, 2027)) == 4 + 4
    assert len(days_of(found, 2028)) == 5 + 4


def test_stretches_that_overlap_or_touch_are_one() -> None:
    found = parse_exclusions(
        ["2026-01-05..2026-01-09", "2026-01-10", "2026-01-01..2026-01-06", "2026-01-12"]
    )
    day = date(2026, 1, 3)
    assert found.around(day) == (date(2026, 1, 1), date(2026, 1, 10))
    assert found.around(date(2026, 1, 11)) is None
    assert str(found) == "2026-01-01..2026-01-10,2026-01-12..2026-01-12"


def test_none() -> None:
    assert parse_exclusions([]).is_empty
    assert not parse_exclusions(["12-25"]).is_empty


def test_the_ends_of_the_calendar() -> None:
    found = parse_exclusions(["0001-01-01..9999-12-31"])
    assert found.around(date(2026, 1, 1)) == (date.min, date.max)
    assert found.last_dated == date.max
    of_year = parse_exclusions(["12-30..01-02"])
    assert of_year.around(date.min) == (date.min, date(1, 1, 2))
    assert of_year.around(date.max) == (date(9999, 12, 30), date.max)
    assert of_year.last_dated == date.min


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("", "neither a day"),
        ("25.12.", "neither a day"),
        ("2026-12-25 ", "neither a day"),
        ("2026-1-5", "neither a day"),
        ("12-24...12-26", "neither a day"),
        ("\u0661\u0662-25", "neither a day"),
        ("2026-02-29", "no such day"),
        ("02-30", "no such day"),
        ("13-01", "no such day"),
        ("0000-01-01", "no such day"),
        ("2026-12-24..12-26", "has a year"),
        ("12-24..2026-12-26", "has a year"),
        ("2026-12-26..2026-12-24", "ends before it begins"),
        ("01-01..12-31", "every day"),
        ("05-01..04-30", "every day"),
    ],
)
def test_refused(entry: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_exclusions([entry])
    assert reason in caught.value.reason
    assert caught.value.hint
