"""The grammar: what is read, and how what is not read is refused."""

from __future__ import annotations

import pytest

from tests.support.cron_data import INVALID, QUIRKS, Refusal
from tidework.errors import ScheduleError
from tidework.model.schedules.cron_parse import DESCRIPTORS, MAX_LENGTH, CronFields, parse_fields
from tidework.model.schedules.cron_special import SpecialDay, SpecialKind

# Two of the accidents are sensible, and a CronJob may carry them.
ACCEPTED_QUIRKS = {
    "quirk-08",  # */100 in the minute: a step beyond the field leaves its first value
    "quirk-17",  # ? in every field
}

# Kubernetes refuses them; they have a meaning here: a field for seconds, and special days.
BEYOND_KUBERNETES = {
    "inv-004",  # * * * * * *
    "inv-005",  # 0 0 12 * * ?
    "inv-051",  # L
    "inv-052",  # LW
    "inv-053",  # 15W
    "inv-054",  # L-3
    "inv-056",  # 5L
    "inv-058",  # MON#2
    "inv-059",  # 2#2
}
# The same with a name to spread by.
HASHED = {"inv-061", "inv-062"}

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
    assert {case.id for case in INVALID} > BEYOND_KUBERNETES | HASHED


@pytest.mark.parametrize(
    "wrong",
    [
        *(case for case in INVALID if case.id not in BEYOND_KUBERNETES),
        *(quirk for quirk in QUIRKS if quirk.id not in ACCEPTED_QUIRKS),
    ],
    ids=lambda wrong: wrong.id,
)
def test_refused_with_position_and_hint(wrong: Refusal) -> None:
    error = refusal(wrong.schedule)
    assert error.expression == wrong.schedule
    assert error.reason
    assert error.hint
    assert error.position is not None
    assert 0 <= error.position <= len(wrong.schedule)


@pytest.mark.parametrize(
    "case", [case for case in INVALID if case.id in BEYOND_KUBERNETES | HASHED], ids=lambda c: c.id
)
def test_accepted_beyond_kubernetes(case: Refusal) -> None:
    parse_fields(case.schedule, spread="shop/nightly")


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
        ("0 0 * * * * *", 12, "six with the second in front; there is no field for years"),
        ("0 0 12 1 1 ? 2030", 13, "there is no field for years"),
        ("60 0 12 1 1 ?", 0, "the second field takes 0-59"),
        ("0 0 12 L 1 7", 11, "write 0 or SUN for Sunday"),
        ("0 0 * *", 7, "write five fields: minute hour day-of-month month day-of-week"),
        ("0 22-2 * * *", 2, "write two, as in 22-23,0-2"),
        ("10-20-30 * * * *", 5, "a range is written 10-20"),
        ("1/2/3 * * * *", 3, "write one step"),
        ("0 0 1 1,JANUARY *", 8, "names have three letters: JAN"),
        ("0 0 MON * *", 4, "MON belongs into the day-of-week field"),
        ("L 0 * * *", 0, "the day-of-month field takes L, L-3, LW and 15W"),
        ("0 0 25-L * *", 7, "each alone or within a list"),
        ("0 0 L/2 * *", 4, "each alone or within a list"),
        ("0 0 L-31 * *", 4, "L-30 the first of a long month"),
        ("0 0 L-0 * *", 4, "L is the last day"),
        ("0 0 32W * *", 4, "takes 1-31"),
        ("0 0 W * *", 4, "each alone or within a list"),
        ("0 0 L-29 FEB *", 4, "February has at most 29 days"),
        ("0 0 31W 4,6 *", 4, "April, June, September and November have 30"),
        ("0 0 * * L", 8, "FRI#2 for the second Friday, FRIL for the last one"),
        ("0 0 * * L5", 8, "FRIL for the last one"),
        ("0 0 * * 1#6", 10, "#1 to #5"),
        ("0 0 * * 1#0", 10, "#1 to #5"),
        ("0 0 * * 7#1", 8, "write 0 or SUN for Sunday"),
        ("0 0 * * FOO#1", 8, "0-6 or SUN-SAT"),
        ("H * * * *", 0, "--name NAMESPACE/NAME"),
        ("0 0 L-3W * *", 4, "each alone or within a list"),
        ("R * * * *", 0, "is written H, or H(0-29)"),
        ("0~30 * * * *", 0, "is written H, or H(0-29)"),
        ("HH * * * *", 0, "H stands alone"),
        ("H-5 * * * *", 0, "H stands alone"),
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


@pytest.mark.parametrize(
    ("days", "special"),
    [
        ("L * *", [SpecialDay(SpecialKind.BEFORE_LAST, 0)]),
        ("l-3 * ?", [SpecialDay(SpecialKind.BEFORE_LAST, 3)]),
        ("15W * *", [SpecialDay(SpecialKind.NEAREST, 15)]),
        ("LW,lw * *", [SpecialDay(SpecialKind.NEAREST, 0)]),
        ("* * FRI#2", [SpecialDay(SpecialKind.NTH, 2, 5)]),
        ("* * fril,5#2", [SpecialDay(SpecialKind.NTH, 0, 5), SpecialDay(SpecialKind.NTH, 2, 5)]),
        ("*,L * MON", []),  # beside a star they name nothing more
        ("1 * *,MON#1", []),
    ],
)
def test_special_days(days: str, special: list[SpecialDay]) -> None:
    assert list(parse_fields(f"0 0 {days}").special) == special


def test_special_days_leave_the_plain_ones_empty() -> None:
    fields = parse_fields("0 0 L * *")
    assert (fields.days, fields.weekdays, fields.day_or) == ((), EVERY_WEEKDAY, False)
    fields = parse_fields("0 0 1,L * FRI#1")
    assert (fields.days, fields.weekdays, fields.day_or) == ((1,), (), True)


@pytest.mark.parametrize("special", ["L", "L-3", "15W", "LW"])
def test_special_days_as_they_are_written(special: str) -> None:
    assert [str(day) for day in parse_fields(f"0 0 {special} * *").special] == [special]


def test_seconds() -> None:
    assert parse_fields("0 6 * * *").seconds == (0,)
    assert parse_fields("*/20 0 6 * * *").seconds == (0, 20, 40)
    assert parse_fields("*/20 0 6 * * *").fixed_time  # for DST hours and minutes count


def hashed(expression: str, spread: str) -> CronFields:
    return parse_fields(expression, spread=spread)


def test_h_is_the_same_for_ever() -> None:
    """Another release that hashed otherwise would move every schedule."""
    fields = hashed("H H H H H H", "shop/nightly")
    found = (fields.seconds, fields.minutes, fields.hours, fields.days, fields.months)
    assert (*found, fields.weekdays) == ((47,), (1,), (21,), (19,), (4,), (5,))


@pytest.mark.parametrize(
    ("field", "low", "high", "step"),
    [
        ("H", 0, 59, None),
        ("H(10-29)", 10, 29, None),
        ("H/15", 0, 59, 15),
        ("H(0-29)/10", 0, 29, 10),
        ("H(50-59)/45", 50, 59, 45),
        ("H/90", 0, 59, 90),
    ],
)
def test_h_spreads_within_its_bounds(field: str, low: int, high: int, step: int | None) -> None:
    found = {hashed(f"{field} * * * *", f"shop/{number}").minutes for number in range(600)}
    starts = {values[0] for values in found}
    assert starts == set(range(low, low + min(step or 60, high - low + 1)))
    for values in found:
        assert values == tuple(range(values[0], high + 1, step) if step else values[:1])


def test_h_as_a_day_is_one_of_every_month() -> None:
    days = {hashed("0 0 H * *", f"shop/{number}").days[0] for number in range(600)}
    assert days == set(range(1, 29))
    weekdays = {hashed("0 0 * * H", f"shop/{number}").weekdays[0] for number in range(100)}
    assert weekdays == set(range(7))


def test_h_is_no_wildcard() -> None:
    fields = hashed("H H(0-3) H * H", "shop/nightly")
    assert fields.fixed_time
    assert fields.day_or
