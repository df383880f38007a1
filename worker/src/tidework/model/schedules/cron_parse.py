"""Cron expressions: text in, value sets and the day rule out. No time, no zone.

The grammar is the one of Kubernetes CronJob (github.com/robfig/cron v3.0.1, ``ParseStandard``)
without its accidents: what it takes by oversight (``*-5``, ``1,,2``, ``+5``, no-break spaces,
30 February) is refused here. Beyond it: a sixth field, seconds, in front; ``H``; days that depend
on the month. Every refusal is a ScheduleError with a hint and the offset of the culprit. Time and
memory are bounded by MAX_LENGTH.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidework.errors import ScheduleError
from tidework.model.schedules.cron_field import (
    FIELDS,
    SECOND,
    Field,
    FieldValues,
    Step,
    Text,
    parse_field,
    steps_in,
)
from tidework.model.schedules.cron_special import LONGEST_MONTH, SpecialDay

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

# ASCII only: str.split() and \s would part fields at no-break and ideographic spaces too.
_WORD = re.compile(r"[^ \t\n\r\v\f]+")
_ODD_CHARACTER = re.compile(r"[^ -~\t\n\r\v\f]")
_ZONE_PREFIX = re.compile(r"(CRON_)?TZ=")


@dataclass(frozen=True, slots=True)
class CronFields:
    """A parsed expression. Every tuple is sorted, without repetition, and not empty.

    days, weekdays: (0-6 from Sunday) either is empty where only special days are named
    day_or:     a day matches if days *or* weekdays name it; else both have to
    fixed_time: neither minute nor hour was written with ``*`` or ``?`` (for DstPolicy.ONCE)
    special:    days that depend on the month, which match beside days and weekdays
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    day_or: bool
    fixed_time: bool
    seconds: tuple[int, ...] = (0,)
    special: tuple[SpecialDay, ...] = ()


def parse_fields(expression: str, *, spread: str | None = None) -> CronFields:
    """Parse five or six fields or a descriptor; raises ScheduleError with position and hint.

    spread: what ``H`` is hashed from, such as ``namespace/name``; None refuses it
    """
    source = Text(expression, spread)
    columns = _columns(expression)
    *seconds, minutes, hours, days, months, weekdays = (
        parse_field(source, word, position, field) for field, word, position in columns
    )
    # Kubernetes' rule: a star in either day field makes it AND. ``*/2`` is no star.
    day_or = not (days.star or weekdays.star)
    special = _counting(days, weekdays)
    if weekdays.star and not _has_a_date(days.values, special, months.values):
        raise ScheduleError(
            expression,
            "no such date: it would never fire",
            hint="February has at most 29 days; April, June, September and November have 30",
            position=columns[-3][2],
        )
    return CronFields(
        minutes=minutes.values,
        hours=hours.values,
        days=days.values,
        months=months.values,
        weekdays=weekdays.values,
        day_or=day_or,
        fixed_time=not (minutes.wildcard or hours.wildcard),
        seconds=seconds[0].values if seconds else (0,),
        special=special,
    )


def written_steps(expression: str, *, spread: str | None = None) -> list[Step]:
    """The steps of an expression as its author wrote them; raises ScheduleError.

    parse_fields forgets the spelling: ``*/60`` and ``0`` fire alike.
    """
    source = Text(expression, spread)
    return [
        step
        for field, word, position in _columns(expression)
        for step in steps_in(source, word, position, field)
    ]


def _columns(expression: str) -> list[tuple[Field, str, int]]:
    """Each field with its text and where that begins."""
    _refuse_odd_text(expression)
    text = _without_descriptor(expression)
    # Positions in an expanded descriptor mean nothing, but those are never refused.
    words = [(match.group(), match.start()) for match in _WORD.finditer(text)]
    expected = (SECOND, *FIELDS) if len(words) == len(FIELDS) + 1 else FIELDS
    if len(words) != len(expected):
        raise _wrong_count(expression, words)
    return [(field, *word) for field, word in zip(expected, words, strict=True)]


def _counting(days: FieldValues, weekdays: FieldValues) -> tuple[SpecialDay, ...]:
    """The special days that matter: beside a star none of the same field does."""
    of_month = () if days.star else days.special
    of_week = () if weekdays.star else weekdays.special
    return tuple(sorted((*of_month, *of_week)))


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
    surplus = words[len(FIELDS) + 1 :]
    position = surplus[0][1] if surplus else len(expression.rstrip())
    if count == 0:
        reason = "it is empty"
    elif surplus:
        reason = f"{count} fields instead of five, or six with seconds"
        hint += ", or six with the second in front; there is no field for years"
    return ScheduleError(expression, reason, hint=hint, position=position)


def _has_a_date(
    days: tuple[int, ...], special: tuple[SpecialDay, ...], months: tuple[int, ...]
) -> bool:
    """Whether any of the months ever has one of the days."""
    return any(
        bool(days and days[0] <= LONGEST_MONTH[month - 1])
        or any(day.may_be_in(month) for day in special)
        for month in months
    )
