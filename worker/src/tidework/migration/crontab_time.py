"""The five fields of a crontab in our grammar, and what differs between the two. Pure.

Day 7 is 0 here; ``A~B``, chosen anew by cronie at each reading, is ``H(A-B)``, chosen by the name.
cronie and Debian's cron want both day fields to match if either *begins* with ``*``; here, as in
Kubernetes, if either *holds* a whole ``*``: so ``*/2`` beside a weekday is AND there and OR here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidework.errors import ScheduleError
from tidework.model.schedules.cron_field import DAY_OF_WEEK
from tidework.model.schedules.cron_parse import parse_fields

_RANDOM = re.compile(r"(?P<low>[0-9]*)~(?P<high>[0-9]*)(?P<step>/[0-9]+)?\Z")
_SPAN = re.compile(r"(?P<low>[0-9]+|[A-Za-z]{3})(?:-(?P<high>[0-9]+))?(?:/(?P<step>[0-9]+))?\Z")
_STARS = {"*", "?", "*/1", "?/1"}
_SUNDAY = 7


@dataclass(frozen=True, slots=True)
class When:
    """schedule: in our grammar; remarks: what is not the same; safe: False if it fires on other
    days than it did."""

    schedule: str
    remarks: tuple[str, ...] = ()
    safe: bool = True


def converted(when: str) -> When:
    """Raises ScheduleError for what cron would not take, or has no form here."""
    if when.startswith("@"):
        parse_fields(when, spread="")
        return When(when)
    fields = when.split()
    remarks: list[str] = []
    fields[4] = ",".join(_without_seven(element) for element in fields[4].split(","))
    if fields[4] != when.split()[4]:
        remarks.append(f"day of week {when.split()[4]} is written {fields[4]}: Sunday is 0 here")
    for place, field in enumerate(fields):
        fields[place] = ",".join(_without_random(element) for element in field.split(","))
        if fields[place] != field:
            remarks.append(
                f"{field} is written {fields[place]}: cron chooses again at each "
                "start, H is chosen once, by the name"
            )
    schedule = " ".join(fields)
    parse_fields(schedule, spread="")
    safe = _has_same_days(fields[2], fields[4])
    if not safe:
        remarks.append(_of_days(fields[2], fields[4]))
    return When(schedule, tuple(remarks), safe)


def _without_seven(element: str) -> str:
    found = _SPAN.fullmatch(element)
    if found is None or "7" not in (found["low"], found["high"]):
        return element
    low = DAY_OF_WEEK.named(found["low"])
    first = int(found["low"]) if low is None else low
    last = int(found["high"] or found["low"])
    step = int(found["step"] or 1)
    if first > last or last > _SUNDAY or step == 0:
        return element  # refused by the parser, which says why
    days = sorted({day % _SUNDAY for day in range(first, last + 1, step)})
    if days == list(range(_SUNDAY)):
        return "0-6"
    if step == 1 and len(days) > 2 and days[0] == 0:
        return f"{first}-6,0" if first > 1 else "0-6"
    return ",".join(map(str, days))


def _without_random(element: str) -> str:
    found = _RANDOM.fullmatch(element)
    if found is None:
        return element
    step = found["step"] or ""
    if not found["low"] and not found["high"]:
        return f"H{step}"
    if not found["low"] or not found["high"]:
        raise ScheduleError(element, "one end is left open", hint="write both ends, as in 0~30")
    return f"H({found['low']}-{found['high']}){step}"


def _has_same_days(days: str, weekdays: str) -> bool:
    """Do both readings join the day fields alike?"""
    theirs = days.startswith("*") or weekdays.startswith("*")
    ours = any(element in _STARS for field in (days, weekdays) for element in field.split(","))
    return theirs == ours


def _of_days(days: str, weekdays: str) -> str:
    if days.startswith("*") or weekdays.startswith("*"):
        return (
            f"days {days} {weekdays}: cron wants both day fields to match (AND), here either is "
            "enough (OR), so it would fire more often; suspended until you have decided"
        )
    return (
        f"days {days} {weekdays}: for cron either day field is enough (OR), here a * within "
        "the list makes it AND, so it would fire less often; suspended until you have decided"
    )
