"""The grammar: what is read, and how what is not read is refused."""

from __future__ import annotations

import pytest

from tests.support.cron_data import INVALID, QUIRKS, Refusal
from tidework.errors import ScheduleError
from tidework.model.cron_parse import DESCRIPTORS, MAX_LENGTH, CronFields, parse_fields

# Two of the accidents are sensible, and a CronJob may carry them.
ACCEPTED_QUIRKS = {
    "quirk-08",  # */100 in the minute: a step beyond the field leaves its first value
    "quirk-17",  # ? in every field
}

EVERY_DAY = tuple(range(1, 32))
EVERY_MONTH = tuple(range(1, 13))
EVERY_WEEKDAY = tuple(range(7))


def refusal(expression: str) -> ScheduleError:
    with pytest.raises(ScheduleError) as caught:
        parse_fields(expression)
    return caught.value


def test_counts() -> None:
    assert len(INVALID) == 100
    assert len(QUIRKS) == 17
    assert {quirk.id for quirk in QUIRKS} > ACCEPTED_QUIRKS


@pytest.mark.parametrize(
    "wrong", [*INVALID, *(q for q in QUIRKS if q.id not in ACCEPTED_QUIRKS)], ids=lambda w: w.id
)
def test_refused_with_position_and_hint(wrong: Refusal) -> None:
    error = refusal(wrong.schedule)
    assert error.expression == wrong.schedule
    assert error.reason
    assert error.hint
    assert error.position is not None
    assert 0 <= error.position <= len(wrong.schedule)


@pytest.mark.parametrize(
    "quirk", [q for q in QUIRKS if q.id in ACCEPTED_QUIRKS], ids=lambda q: q.id
)
def test_accepted_quirks(quirk: Refusal) -> None:
    parse_fields(quirk.schedule)


@pytest.mark.parametrize(
    ("expression", "position", "hint"),
    [
        ("0 0 * * 7", 8, "write 0 or SUN for Sunday"),
        ("0 0 * * 1-7", 10, "write 0 or SUN for Sunday"),
        ("0 0 1,32 * *", 6, "day-of-month field takes 1-31"),
        ("0 0 * 1,2,13 *", 10, "1-12 or JAN-DEC"),
        ("TZ=UTC 0 * * * *", 0, "field timeZone"),
        ("0 0 * * * CRON_TZ=UTC", 10, "field timeZone"),
        ("*-5 * * * *", 0, "* stands alone or before a step, as in */5"),
        ("0 0 1,,2 * *", 6, "remove the extra comma"),
        ("0 +5 * * *", 2, "write 5 without the sign"),
        ("0 */+5 * * *", 4, "whole number from 1"),
        ("0 0 * * * *", 10, "seconds is not supported yet"),
        ("0 0 * *", 7, "write five fields: minute hour day-of-month month day-of-week"),
        ("0 22-2 * * *", 2, "write two, as in 22-23,0-2"),
        ("10-20-30 * * * *", 5, "a range is written 10-20"),
        ("1/2/3 * * * *", 3, "write one step"),
        ("0 0 1 1,JANUARY *", 8, "names have three letters: JAN"),
        ("0 0 MON * *", 4, "MON belongs into the day-of-week field"),
        ("0 0 L * *", 4, "L, W, #, H, R and ~ are not supported"),
        ("0 0 30 FEB *", 4, "February has at most 29 days"),
        ("0 0 31 4,6,9,11 ?", 4, "April, June, September and November have 30"),
        ("@every 90s", 0, "use the field every"),
        ("@Every 90s", 0, "use the field every"),
        ("@Daily", 0, "lower case: @daily"),
        ("  @daily", 0, "write @daily and nothing else"),
        ("@daily\n", 6, "write @daily and nothing else"),
        ("0 0\u00a0* * *", 3, "plain ASCII"),
        ("\u0660 0 * * *", 0, "plain ASCII"),
        ("0 0 * * *\0", 9, "plain ASCII"),
    ],
)
def test_the_culprit_and_the_way_out(expression: str, position: int, hint: str) -> None:
    error = refusal(expression)
    assert error.position == position
    assert hint in error.hint


@pytest.mark.parametrize("digits", ["9" * 10, "9" * 900])
def test_numbers_of_any_length_are_refused_as_such(digits: str) -> None:
    assert "out of range" in refusal(f"{digits} * * * *").reason
    assert "too large" in refusal(f"*/{digits} * * * *").reason


def test_length_is_bounded() -> None:
    longest = "0," * ((MAX_LENGTH - len("0 * * * *")) // 2) + "0 * * * *"
    assert parse_fields(longest).minutes == (0,)
    assert str(MAX_LENGTH) in refusal(longest + " " * MAX_LENGTH).reason


def test_values() -> None:
    assert parse_fields("5,10-12,50/4 */6 1-31/15 jan,Mar-MAY sun,2-Thu") == CronFields(
        minutes=(5, 10, 11, 12, 50, 54, 58),
        hours=(0, 6, 12, 18),
        days=(1, 16, 31),
        months=(1, 3, 4, 5),
        weekdays=(0, 2, 3, 4),
        day_or=True,
        fixed_time=False,
    )


def test_blanks_and_leading_zeros_mean_nothing() -> None:
    plain = parse_fields("5 8 1 2 *")
    assert parse_fields("\t05  08 01\r\n02 * \n") == plain
    assert parse_fields(f"{'0' * 200}5 8 1 2 *") == plain


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("30-30", (30,)),  # croniter alone would take the whole field
        ("59/15", (59,)),
        ("55/2", (55, 57, 59)),
        ("10-12/5", (10,)),
        ("?/20", (0, 20, 40)),
        ("7,7,7-8", (7, 8)),
    ],
)
def test_minutes(field: str, values: tuple[int, ...]) -> None:
    assert parse_fields(f"{field} * * * *").minutes == values


@pytest.mark.parametrize(
    ("days", "day_or"),
    [
        ("1 * MON", True),
        ("* * MON", False),
        ("? * MON", False),
        ("*/1 * MON", False),
        ("1,* * MON", False),
        ("1 * ?", False),
        ("1 * */1", False),
        ("1 * 1,*", False),
        ("*/2 * MON", True),  # vixie's cron has a star here
        ("1 * */2", True),
        ("1-31 * MON", True),
        ("1 * 0-6", True),
    ],
)
def test_the_day_rule(days: str, day_or: bool) -> None:
    assert parse_fields(f"0 0 {days}").day_or is day_or


@pytest.mark.parametrize(
    ("time", "fixed"),
    [
        ("30 2", True),
        ("0,30 1-3", True),
        ("0/15 2", True),
        ("0 0-23", True),
        ("* 2", False),
        ("*/15 2", False),
        ("? 2", False),
        ("30 *", False),
        ("30 */2", False),
        ("30 1,?/4", False),
    ],
)
def test_fixed_time_is_one_without_wildcards(time: str, fixed: bool) -> None:
    assert parse_fields(f"{time} * * *").fixed_time is fixed


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
def test_descriptors(descriptor: str) -> None:
    fields = parse_fields(descriptor)
    assert fields == parse_fields(DESCRIPTORS[descriptor])
    assert fields.minutes == (0,)
    assert fields.fixed_time is (descriptor != "@hourly")


def test_all_descriptors_of_kubernetes() -> None:
    assert sorted(DESCRIPTORS) == [
        "@annually",
        "@daily",
        "@hourly",
        "@midnight",
        "@monthly",
        "@weekly",
        "@yearly",
    ]
    weekly = parse_fields("@weekly")
    assert (weekly.hours, weekly.days, weekly.weekdays) == ((0,), EVERY_DAY, (0,))
    monthly = parse_fields("@monthly")
    assert (monthly.days, monthly.months, monthly.weekdays) == ((1,), EVERY_MONTH, EVERY_WEEKDAY)
    assert parse_fields("@yearly").months == (1,)


@pytest.mark.parametrize(
    "expression", ["0 0 29 2 *", "0 0 31 2,3 *", "0 0 30 2 MON", "0 0 31 2 */2"]
)
def test_rare_dates_are_possible(expression: str) -> None:
    parse_fields(expression)
