"""Cron expressions: text in, value sets and the day rule out. No time, no zone.

The grammar is the one of Kubernetes CronJob (github.com/robfig/cron v3.0.1, ``ParseStandard``)
without its accidents: what it takes by oversight (``*-5``, ``1,,2``, ``+5``, no-break spaces,
30 February) is refused here. Every refusal is a ScheduleError with a hint and the offset of the
culprit. Time and memory are bounded by MAX_LENGTH.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidework.errors import ScheduleError
from tidework.model.cron_field import FIELDS, parse_field

MAX_LENGTH = 1000

DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

# ASCII only: str.split() and \s would part fields at no-break and ideographic spaces too.
_WORD = re.compile(r"[^ \t\n\r\v\f]+")
_ODD_CHARACTER = re.compile(r"[^ -~\t\n\r\v\f]")
_ZONE_PREFIX = re.compile(r"(CRON_)?TZ=")


@dataclass(frozen=True, slots=True)
class CronFields:
    """A parsed expression. Every tuple is sorted, without repetition, and not empty.

    weekdays:   0-6 from Sunday
    day_or:     a day matches if days *or* weekdays name it; else both have to
    fixed_time: neither minute nor hour was written with ``*`` or ``?`` (for DstPolicy.ONCE)
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    day_or: bool
    fixed_time: bool


def parse_fields(expression: str) -> CronFields:
    """Parse five fields or a descriptor; raises ScheduleError with position and hint."""
    _refuse_odd_text(expression)
    text = _without_descriptor(expression)
    # Positions in an expanded descriptor mean nothing, but those are never refused.
    words = [(match.group(), match.start()) for match in _WORD.finditer(text)]
    if len(words) != len(FIELDS):
        raise _wrong_count(expression, words)
    minutes, hours, days, months, weekdays = (
        parse_field(expression, word, position, field)
        for (word, position), field in zip(words, FIELDS, strict=True)
    )
    # Kubernetes' rule: a star in either day field makes it AND. ``*/2`` is no star.
    day_or = not (days.star or weekdays.star)
    if not day_or and not _has_a_date(days.values, months.values):
        raise ScheduleError(
            expression,
            "no such date: it would never fire",
            hint="February has at most 29 days; April, June, September and November have 30",
            position=words[2][1],
        )
    return CronFields(
        minutes=minutes.values,
        hours=hours.values,
        days=days.values,
        months=months.values,
        weekdays=weekdays.values,
        day_or=day_or,
        fixed_time=not (minutes.wildcard or hours.wildcard),
    )


def _refuse_odd_text(expression: str) -> None:
    """What is refused before the fields are looked at: length, foreign characters, ``TZ=``."""
    if len(expression) > MAX_LENGTH:
        raise ScheduleError(
            expression[:40] + "...",
            f"{len(expression)} characters; {MAX_LENGTH} are allowed",
            hint="merge values into ranges and steps",
            position=MAX_LENGTH,
        )
    odd = _ODD_CHARACTER.search(expression)
    if odd:
        raise ScheduleError(
            expression,
            f"the character U+{ord(odd.group()):04X} does not belong into a schedule",
            hint="use plain ASCII digits, letters and blanks; copied text often hides others",
            position=odd.start(),
        )
    zone = _ZONE_PREFIX.search(expression)
    if zone:
        raise ScheduleError(
            expression,
            f"{zone.group()} inside the schedule",
            hint="name the zone in the field timeZone",
            position=zone.start(),
        )


def _without_descriptor(expression: str) -> str:
    """Expand ``@hourly`` and its like into five fields; refuse every other ``@`` word."""
    if expression in DESCRIPTORS:
        return DESCRIPTORS[expression]
    name = expression.strip()
    if not name.startswith("@"):
        return expression
    position = expression.index("@")
    reason = f"{name!r} is not a descriptor"
    if name.split()[0].lower() == "@every":
        reason = "@every is not a cron schedule"
        hint = "use the field every instead of the schedule, as in every: 90s"
    elif name in DESCRIPTORS:
        reason = "blanks around a descriptor"
        hint = f"write {name} and nothing else"
        position = 0 if position else len(name)
    elif name.lower() in DESCRIPTORS:
        hint = f"descriptors are in lower case: {name.lower()}"
    elif name == "@reboot":
        hint = "nothing boots here: enqueue the job where the start happens"
    else:
        hint = f"there are {', '.join(DESCRIPTORS)}"
    raise ScheduleError(expression, reason, hint=hint, position=position)


def _wrong_count(expression: str, words: list[tuple[str, int]]) -> ScheduleError:
    count = len(words)
    reason = f"{count} {'field' if count == 1 else 'fields'} instead of five"
    hint = f"write five fields: {' '.join(field.title for field in FIELDS)}"
    surplus = words[len(FIELDS) :]
    position = surplus[0][1] if surplus else len(expression.rstrip())
    if count == 0:
        reason = "it is empty"
    elif len(surplus) == 1:
        hint += (
            "; a field for seconds is not supported yet,"
            " the field every takes intervals below a minute"
        )
    return ScheduleError(expression, reason, hint=hint, position=position)


def _has_a_date(days: tuple[int, ...], months: tuple[int, ...]) -> bool:
    """Whether any of the months ever has the first of the days."""
    return any(days[0] <= _LONGEST_MONTH[month - 1] for month in months)
