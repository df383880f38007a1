"""Every: fires at its anchor plus whole multiples of its interval."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from tidework.errors import ScheduleError
from tidework.model.schedules.schedule import EPOCH, Every

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TICK = timedelta(microseconds=1)


def test_fires_lie_on_multiples_from_the_anchor() -> None:
    every = Every(timedelta(seconds=90), NOON)
    assert every.next(NOON) == NOON + 90 * SECOND
    assert every.next(NOON - TICK) == NOON
    assert every.next(NOON + 90 * SECOND - TICK) == NOON + 90 * SECOND
    assert every.next(NOON - 91 * SECOND) == NOON - 90 * SECOND  # the anchor is no beginning
    assert every.latest(NOON, NOON - TICK) == NOON
    assert every.latest(NOON, NOON) is None
    assert every.latest(NOON + 89 * SECOND, NOON) is None
    assert every.between(NOON, NOON + 270 * SECOND, 10) == [
        NOON + 90 * SECOND,
        NOON + 180 * SECOND,
        NOON + 270 * SECOND,
    ]
    assert every.between(NOON, NOON + 270 * SECOND, 2) == [
        NOON + 90 * SECOND,
        NOON + 180 * SECOND,
    ]


def test_the_anchor_is_the_unix_zero_unless_said() -> None:
    assert datetime.fromtimestamp(0, UTC) == EPOCH
    assert Every(timedelta(hours=1)).next(NOON + SECOND) == NOON + timedelta(hours=1)


def test_real_seconds_whatever_the_clock_does() -> None:
    """Asked in a zone that jumps meanwhile; answered in UTC."""
    new_york = ZoneInfo("America/New_York")
    before = datetime(2026, 3, 8, 1, 30, tzinfo=new_york)
    fire = Every(timedelta(hours=1)).next(before)
    assert fire == datetime(2026, 3, 8, 7, tzinfo=UTC)
    assert fire is not None
    assert fire.tzinfo is UTC


def test_a_utc_by_another_name_is_stored_as_utc() -> None:
    """London's winter: adding hours in that zone would count wall time."""
    winter = datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/London"))
    every = Every(timedelta(hours=1), winter)
    assert every == Every(timedelta(hours=1), winter.astimezone(UTC))
    asked = datetime(2026, 7, 1, 12, 30, tzinfo=ZoneInfo("Europe/London"))
    assert every.next(asked) == datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("interval", "anchor", "reason"),
    [
        (timedelta(0), EPOCH, "less than a second"),
        (timedelta(milliseconds=999), EPOCH, "less than a second"),
        (timedelta(minutes=-5), EPOCH, "less than a second"),
        (timedelta(seconds=1.5), EPOCH, "not in whole seconds"),
        (timedelta(minutes=1), datetime(2026, 1, 1), "not in UTC"),  # noqa: DTZ001
        (timedelta(minutes=1), NOON.astimezone(timezone(timedelta(hours=1))), "not in UTC"),
        (timedelta(minutes=1), NOON + TICK, "not on a whole second"),
    ],
)
def test_refused(interval: timedelta, anchor: datetime, reason: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        Every(interval, anchor)
    assert reason in caught.value.reason
    assert caught.value.hint
    assert caught.value.position is None


@pytest.mark.parametrize(
    "interval", [SECOND, timedelta(days=400), timedelta.max // SECOND * SECOND]
)
def test_the_ends_of_the_calendar(interval: timedelta) -> None:
    every = Every(interval)
    begin = datetime.min.replace(tzinfo=UTC)
    end = datetime.max.replace(tzinfo=UTC)
    assert every.next(end) is None
    last = every.latest(end, begin)
    assert last is not None
    assert every.next(last) is None
    assert every.between(last, end, 3) == []


def test_naive_datetimes_and_empty_limits_are_refused() -> None:
    every = Every(SECOND)
    naive = NOON.replace(tzinfo=None)
    for ask in (
        lambda: every.next(naive),
        lambda: every.latest(naive, NOON),
        lambda: every.latest(NOON, naive),
        lambda: every.between(naive, NOON, 1),
        lambda: every.between(NOON, naive, 1),
    ):
        with pytest.raises(ValueError, match="no time zone"):
            ask()
    with pytest.raises(ValueError, match="limit"):
        every.between(NOON, NOON, 0)


def test_a_value() -> None:
    every = Every(timedelta(hours=1), NOON)
    assert every == Every(timedelta(minutes=60), NOON)
    assert hash(every) == hash(Every(timedelta(minutes=60), NOON))
    assert pickle.loads(pickle.dumps(every)) == every
    with pytest.raises(AttributeError):
        every.interval = SECOND  # type: ignore[misc]


def test_fingerprint_is_that_of_the_fires() -> None:
    hourly = Every(timedelta(hours=1))
    assert hourly.fingerprint == "4527d623c161bc31"
    assert Every(timedelta(hours=1), NOON).fingerprint == hourly.fingerprint
    assert Every(timedelta(hours=1), NOON + SECOND).fingerprint != hourly.fingerprint
    assert Every(timedelta(hours=2)).fingerprint != hourly.fingerprint
