"""What a schedule does, in plain words: English or Chinese. The only door to cron-descriptor.

cron-descriptor gets an expression made from the values that our own parser read, one for each
special day, so that its grammar is not relied on; what its Chinese leaves in English, or leaves
out, is mended here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from cron_descriptor import Options, get_description

from tidework.crontasks.language import Language
from tidework.model.schedules.composed import AnyOf, At, Without
from tidework.model.schedules.cron import CronSchedule, Every, Schedule
from tidework.model.schedules.cron_parse import CronFields
from tidework.model.schedules.cron_special import SpecialDay, SpecialKind

_LOCALES = {Language.ENGLISH: "en_US", Language.CHINESE: "zh_CN"}

_EVERY = {Language.ENGLISH: "Every {}, counted from {}", Language.CHINESE: "从 {1} 起每 {0}"}
_AT = {Language.ENGLISH: "Once, at {}", Language.CHINESE: "仅一次, 在 {}"}
_WITHOUT = {Language.ENGLISH: "{}; not on {}", Language.CHINESE: "{}; 以下日期除外: {}"}
_AND_ALSO = {Language.ENGLISH: "; and also: ", Language.CHINESE: "; 以及: "}
_DAYS_BEFORE_LAST = "每月最后一天的前 {} 天"

_CHINESE_NAMES = {
    "Sunday": "星期日",
    "Monday": "星期一",
    "Tuesday": "星期二",
    "Wednesday": "星期三",
    "Thursday": "星期四",
    "Friday": "星期五",
    "Saturday": "星期六",
    "January": "一月",
    "February": "二月",
    "March": "三月",
    "April": "四月",
    "May": "五月",
    "June": "六月",
    "July": "七月",
    "August": "八月",
    "September": "九月",
    "October": "十月",
    "November": "十一月",
    "December": "十二月",
}
_NAMES = re.compile("|".join(_CHINESE_NAMES))
_NTH = re.compile(r"在 (第.个\S+) 每月")


def words_of(
    schedule: Schedule, exclude: Sequence[str] = (), language: Language = Language.ENGLISH
) -> str:
    """One or several sentences. exclude: as the document has it"""
    return _say(schedule, exclude, language)


def _say(schedule: Schedule, excluded: Sequence[str], language: Language) -> str:
    if isinstance(schedule, Without):
        said = _say(schedule.schedule, excluded, language)
        return _WITHOUT[language].format(said, ", ".join(excluded))
    if isinstance(schedule, AnyOf):
        each = [_say(one, excluded, language) for one in schedule.schedules]
        return _AND_ALSO[language].join(each)
    if isinstance(schedule, At):
        return _AT[language].format(_written(schedule.instant))
    if isinstance(schedule, Every):
        return _EVERY[language].format(_span(schedule), _written(schedule.anchor))
    assert isinstance(schedule, CronSchedule)
    each = [_describe(text, day, language) for text, day in _expressions(schedule.fields)]
    return _AND_ALSO[language].join(each)


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _span(schedule: Every) -> str:
    seconds = int(schedule.interval.total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _expressions(fields: CronFields) -> Iterator[tuple[str, SpecialDay | None]]:
    """Expressions that fire together as the fields do, and the special day that each is for."""
    times = [_steps(fields.minutes, 0, 59), _steps(fields.hours, 0, 23)]
    if fields.seconds != (0,):
        times.insert(0, _steps(fields.seconds, 0, 59))
    months = _ranges(fields.months, 12)

    def expression(days: str, weekdays: str) -> str:
        return " ".join((*times, days, months, weekdays))

    if fields.day_or:
        # All days one by one are no star, but name every day all the same.
        every_day = len(fields.days) == 31 or len(fields.weekdays) == 7
        named = (_steps(fields.days, 1, 31) or "*", _ranges(fields.weekdays, 7) or "*")
        named = ("*", "*") if every_day else named
        has_plain = bool(fields.days or fields.weekdays)
    else:
        named = (_steps(fields.days, 1, 31), _ranges(fields.weekdays, 7))
        has_plain = all(named)
    if has_plain:
        yield expression(*named), None
    for day in fields.special:
        pair = ("*", str(day)) if day.kind is SpecialKind.NTH else (str(day), "*")
        yield expression(*pair), day


def _steps(values: tuple[int, ...], low: int, high: int) -> str:
    """Values as the shortest field: ``*``, a step, a range or a list."""
    if len(values) == high - low + 1:
        return "*"
    if len(values) < 3:
        return ",".join(map(str, values))
    step = values[1] - values[0]
    if values != tuple(range(values[0], values[-1] + 1, step)):
        return ",".join(map(str, values))
    if step == 1:
        return f"{values[0]}-{values[-1]}"
    if values[0] == low and values[-1] + step > high:
        return f"*/{step}"
    return f"{values[0]}-{values[-1]}/{step}"


def _ranges(values: tuple[int, ...], full: int) -> str:
    """Months or weekdays: names that follow each other as a range, else one by one."""
    if len(values) == full:
        return "*"
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        return f"{values[0]}-{values[-1]}"
    return ",".join(map(str, values))


def _describe(expression: str, day: SpecialDay | None, language: Language) -> str:
    options = Options()
    options.locale_code = _LOCALES[language]
    options.use_24hour_time_format = True
    options.day_of_week_start_index_zero = True
    said: str = get_description(expression, options)
    if language is Language.ENGLISH:
        return said
    if day is not None and day.kind is SpecialKind.BEFORE_LAST and day.number:
        said = f"{said}, {_DAYS_BEFORE_LAST.format(day.number)}"
    named = _NAMES.sub(lambda found: _CHINESE_NAMES[found.group()], said)
    return " ".join(_NTH.sub(r"每月的\1", named).split())
