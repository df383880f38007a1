"""The pattern by which the API server reads a schedule: it refuses no schedule, and most others."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cron_data import CASES, RANDOM_ROWS
from tidework.errors import ScheduleError
from tidework.manifests.cron_form import FORM
from tidework.model.schedules.cron import parse_cron
from tidework.model.schedules.cron_field import DAY_OF_WEEK, FIELDS, MONTH, SECOND, Field

PATTERN = re.compile(FORM, re.ASCII)


def is_read(text: str) -> bool:
    try:
        parse_cron(text, spread="")
    except ScheduleError:
        return False
    return True


def test_no_measured_schedule_is_refused() -> None:
    measured = {case.schedule for case in (*CASES, *RANDOM_ROWS)}
    texts = {text for text in measured if not text.startswith("@") and is_read(text)}

    assert len(texts) > 500
    assert [text for text in texts if not PATTERN.fullmatch(text)] == []


def values(field: Field) -> st.SearchStrategy[str]:
    """Values of the field, some with zeros in front, some as names, and some beyond it."""
    numbers = st.integers(0, field.high + 2)
    zeros = st.sampled_from(["{}", "{:02}", "{:04}"])
    found = st.builds(lambda zero, number: zero.format(number), zeros, numbers)
    names = [*field.names, *(name.lower() for name in field.names), "XYZ"]
    return found | st.sampled_from(names)


def words(field: Field) -> st.SearchStrategy[str]:
    """Words that are, or almost are, fields of a schedule."""
    value = values(field)
    span = st.builds("{}-{}".format, value, value)
    hashed = st.builds("H({})".format, span)
    plain = (
        st.sampled_from(["*", "?", "H", "L", "LW", "L-3", "15W", "L-31"]) | value | span | hashed
    )
    week = st.builds("{}{}".format, value, st.sampled_from(["L", "#1", "#5", "#6", "#"]))
    stepped = st.builds("{}/{}".format, plain, st.integers(0, 99))
    return st.lists(plain | stepped | week, min_size=1, max_size=3).map(",".join)


EXPRESSIONS = st.builds(
    lambda blank, seconds, rest: blank.join([*seconds, *rest]),
    st.sampled_from([" ", "\t", "  "]),
    st.lists(words(SECOND), max_size=1),
    st.tuples(*map(words, FIELDS)),
)


@given(EXPRESSIONS)
def test_no_schedule_that_is_read_is_refused(text: str) -> None:
    if is_read(text):
        assert PATTERN.fullmatch(text), text


@pytest.mark.parametrize(
    "text",
    [
        "0 25 * * *",
        "60 6 * * *",
        "60 0 6 * * *",
        "0 6 0 * *",
        "0 6 32 * *",
        "0 6 * 13 *",
        "0 6 * 0 *",
        "0 6 * * 7",
        "0 6 * * FRY",
        "0 6 * * MON-FRIDAY",
        "*/0 6 * * *",
        "0 6 L-31 * *",
        "0 6 * * FRI#6",
        "0 6 * * JAN",
        "5- 6 * * *",
        "1,,2 6 * * *",
        "a 6 * * *",
        "+5 6 * * *",
        "0 H(1-25) * * *",
    ],
)
def test_what_is_refused_is_not_read_either(text: str) -> None:
    assert not PATTERN.fullmatch(text)
    assert not is_read(text)


def test_every_value_of_every_field_is_taken() -> None:
    for at, field in enumerate((SECOND, *FIELDS)):
        for value in range(field.low, field.high + 1):
            text = " ".join(str(value) if place == at else "*" for place in range(6))
            assert PATTERN.fullmatch(text), text
    assert all(PATTERN.fullmatch(f"0 6 * {name} *") for name in MONTH.names)
    assert all(PATTERN.fullmatch(f"0 6 * * {name.lower()}") for name in DAY_OF_WEEK.names)
