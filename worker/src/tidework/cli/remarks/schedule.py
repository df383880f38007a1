"""What is allowed and yet often not what was meant, for lint and explain. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from tidework.cli.cron_given import Given
from tidework.cli.remarks.dst import Difference, differences
from tidework.cli.remarks.steps import about_steps
from tidework.crontasks.language import Language
from tidework.model.schedules.composed import AnyOf, Without
from tidework.model.schedules.cron import CronSchedule, DstPolicy, Schedule, load_zone
from tidework.model.schedules.cron_parse import CronFields, written_steps

LOOKED_AHEAD = timedelta(days=400)


_WORDS = {
    Language.ENGLISH: {
        "jump": "on {} the clock goes {} from {} to {}: ",
        "forward": "forward",
        "back": "back",
        "fires": "fires at {} under {} only",
        "and": ", ",
        "alike": "Once and Clock are the same to it for the next {} days",
    },
    Language.CHINESE: {
        "jump": "{} 时钟{}, 从 {} 到 {}: ",
        "forward": "拨快",
        "back": "拨慢",
        "fires": "{} 触发, 仅在 {} 下",
        "and": ", ",
        "alike": "未来 {} 天内 Once 与 Clock 相同",
    },
}


def remarks(given: Given, now: datetime) -> list[str]:
    """One sentence each. Raises ScheduleError for a schedule that is refused."""
    rules = given.rules()
    found: list[str] = []
    for cron in _crons(rules.schedule):
        found += _about_fields(cron.fields)
        found += about_steps(cron.fields, written_steps(cron.expression, spread=given.spread))
    if rules.next(now) is None:
        found.append("it never fires again from now on")
    zone = load_zone(given.timing.time_zone)
    found += [
        f"dst: {sentence(each, zone)}" for each in differences(given, now, now + LOOKED_AHEAD)
    ]
    return found


def sentence(found: Difference, zone: ZoneInfo, language: Language = Language.ENGLISH) -> str:
    """A difference in words."""
    jump = found.jump
    words = _WORDS[language]
    how = words["forward" if jump.after > jump.before else "back"]
    each = ((found.once, DstPolicy.ONCE), (found.clock, DstPolicy.CLOCK))
    fires = words["and"].join(
        words["fires"].format(_times(fires, zone), policy.value) for fires, policy in each if fires
    )
    head = words["jump"].format(
        f"{jump.before:%Y-%m-%d}", how, f"{jump.before:%H:%M}", f"{jump.after:%H:%M}"
    )
    return head + fires


def alike(language: Language) -> str:
    """That the policies do not differ."""
    return _WORDS[language]["alike"].format(LOOKED_AHEAD.days)


def _times(fires: tuple[datetime, ...], zone: ZoneInfo) -> str:
    shown = [f"{fire.astimezone(zone):%H:%M:%S %Z}".replace(":00 ", " ", 1) for fire in fires[:3]]
    return ", ".join([*shown, f"... (+{len(fires) - 3})"] if len(fires) > 3 else shown)


def _crons(schedule: Schedule) -> Iterator[CronSchedule]:
    if isinstance(schedule, CronSchedule):
        yield schedule
    elif isinstance(schedule, AnyOf):
        for each in schedule.schedules:
            yield from _crons(each)
    elif isinstance(schedule, Without):
        yield from _crons(schedule.schedule)


def _about_fields(fields: CronFields) -> Iterator[str]:
    if fields.day_or:
        yield (
            "both day fields are given: a day that matches one of them is enough "
            "(a schedule cannot ask for both)"
        )
    if len(fields.seconds) == 60 and len(fields.minutes) < 60:
        yield (
            f"it fires every second of {_counted(len(fields.minutes), 'minute')} of an hour, since "
            "the second is *; for once a minute write 0"
        )
    if len(fields.minutes) == 60 and len(fields.hours) < 24:
        yield (
            f"it fires every minute of {_counted(len(fields.hours), 'hour')}, since the minute "
            "is *; for once an hour write 0"
        )
    if not fields.day_or and not fields.special and fields.days and fields.days[0] > 28:
        yield f"months without a day {fields.days[0]} are passed over; L is the last day of each"


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"
