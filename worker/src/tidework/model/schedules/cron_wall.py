"""Which reading of a clock comes next, or came last, that an expression names. Naive wall time.

The day comes from cron_days, the time of day from the sorted values of three fields. One answer
costs two looks for a day at most, and a few bisections.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta

from tidework.model.schedules.cron_days import Dates, last_day, next_day
from tidework.model.schedules.cron_parse import CronFields

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)


def next_match(fields: CronFields, wall: datetime) -> datetime:
    """The first wall time strictly after ``wall``; datetime.max if there is none."""
    start = wall + _SECOND
    today = start.date()
    dates = Dates.of(fields)
    day = next_day(dates, today - _DAY)
    if day == today:
        at = _first_from(fields, start.hour, start.minute, start.second)
        if at is not None:
            return datetime.combine(day, at)
        day = next_day(dates, today)
    if day == date.max:
        return datetime.max
    return datetime.combine(day, time(fields.hours[0], fields.minutes[0], fields.seconds[0]))


def last_match(fields: CronFields, wall: datetime) -> datetime:
    """The last wall time at or before ``wall``; datetime.min if there is none."""
    today = wall.date()
    dates = Dates.of(fields)
    day = last_day(dates, today)
    if day == today:
        at = _last_until(fields, wall.hour, wall.minute, wall.second)
        if at is not None:
            return datetime.combine(day, at)
        day = last_day(dates, today - _DAY)
    if day == date.min:
        return datetime.min
    return datetime.combine(day, time(fields.hours[-1], fields.minutes[-1], fields.seconds[-1]))


def matches_between(
    fields: CronFields, first: datetime, last: datetime
) -> Iterator[tuple[datetime, timedelta]]:
    """Every wall time from ``first`` to ``last``, both included: its midnight and the time since.

    For expanding many: a fire costs far less than by ``next_match``.
    """
    dates = Dates.of(fields)
    day = next_day(dates, first.date() - _DAY)
    while day <= last.date():
        midnight = datetime(day.year, day.month, day.day)
        low, high = (round((each - midnight).total_seconds()) for each in (first, last))
        for second in _seconds_of_day(fields, low, high):
            yield midnight, timedelta(seconds=second)
        day = next_day(dates, day)


def _seconds_of_day(fields: CronFields, low: int, high: int) -> Iterator[int]:
    hours = fields.hours[bisect_left(fields.hours, low // 3600) :]
    for hour in hours:
        for minute in fields.minutes:
            start = hour * 3600 + minute * 60
            if start > high:
                return
            if start + 59 < low:
                continue
            for second in fields.seconds:
                if low <= start + second <= high:
                    yield start + second


def _first_from(fields: CronFields, hour: int, minute: int, second: int) -> time | None:
    """The first time of day that is not before this one."""
    hours, minutes, seconds = fields.hours, fields.minutes, fields.seconds
    h = bisect_left(hours, hour)
    if h < len(hours) and hours[h] == hour:
        m = bisect_left(minutes, minute)
        if m < len(minutes) and minutes[m] == minute:
            s = bisect_left(seconds, second)
            if s < len(seconds):
                return time(hour, minute, seconds[s])
            m += 1
        if m < len(minutes):
            return time(hour, minutes[m], seconds[0])
        h += 1
    return time(hours[h], minutes[0], seconds[0]) if h < len(hours) else None


def _last_until(fields: CronFields, hour: int, minute: int, second: int) -> time | None:
    """The last time of day that is not after this one."""
    hours, minutes, seconds = fields.hours, fields.minutes, fields.seconds
    h = bisect_right(hours, hour) - 1
    if h >= 0 and hours[h] == hour:
        m = bisect_right(minutes, minute) - 1
        if m >= 0 and minutes[m] == minute:
            s = bisect_right(seconds, second) - 1
            if s >= 0:
                return time(hour, minute, seconds[s])
            m -= 1
        if m >= 0:
            return time(hour, minutes[m], seconds[-1])
        h -= 1
    return time(hours[h], minutes[-1], seconds[-1]) if h >= 0 else None
