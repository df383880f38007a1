"""Remarks about steps: those that never take effect, and those that restart unevenly. Pure.

A field counts within its hour, day, week or month and starts again with the next one. So a step
longer than the field names one value, and a step that does not divide it has a last gap of
another length.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidework.model.schedules.cron_field import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    Field,
    Step,
)
from tidework.model.schedules.cron_parse import CronFields

# What a field's values are counted in: one, several, and the unit of ``every``.
_UNITS = {
    SECOND: ("second", "seconds", "s"),
    MINUTE: ("minute", "minutes", "m"),
    HOUR: ("hour", "hours", "h"),
    DAY_OF_MONTH: ("day", "days", "d"),
    MONTH: ("month", "months", ""),
    DAY_OF_WEEK: ("day", "days", "d"),
}
_MONTH_LENGTHS = (28, 29, 30, 31)
_SHOWN = 6


def about_steps(fields: CronFields, steps: list[Step]) -> Iterator[str]:
    """One sentence for each step that does not do what it seems to say."""
    for step in steps:
        if len(step.values) == 1:
            yield _without_effect(fields, step)
        elif step.whole:
            last_gaps = _last_gaps(step)
            if last_gaps != [step.step] and not _is_even(_values_of(fields, step.field), step):
                yield _uneven(fields, step, last_gaps)


def _without_effect(fields: CronFields, step: Step) -> str:
    only = step.values[0]
    plain = step.text.partition("/")[0]
    plain = plain if plain.startswith("H") else str(only)
    return (
        f"{step.text} in the {step.field.title} field names {_named(step.field, only)} alone, "
        f"since a step of {step.step} leads beyond {_named(step.field, step.values.stop - 1)}: "
        f"write {plain}{_interval(fields, step)}"
    )


def _uneven(fields: CronFields, step: Step, last_gaps: list[int]) -> str:
    one, several, _ = _UNITS[step.field]
    *others, last = [str(gap) for gap in last_gaps if gap != step.step]
    gap = f"{', '.join(others)} or {last}" if others else last
    unit = one if gap == "1" else several
    where = " in some months" if step.field is DAY_OF_MONTH else ""
    names = [_named(step.field, value) for value in step.values]
    shown = names if len(names) <= _SHOWN else [*names[:3], "...", names[-1]]
    return (
        f"{step.text} in the {step.field.title} field names {', '.join(shown)} and then starts "
        f"again: the last gap is {gap} {unit}{where} instead of {step.step}"
        f"{_interval(fields, step)}"
    )


def _last_gaps(step: Step) -> list[int]:
    """The distances from the last value of a round to the first one of the next."""
    first = step.values[0]
    if step.field is DAY_OF_MONTH:
        lasts = ((size, max(day for day in step.values if day <= size)) for size in _MONTH_LENGTHS)
        return sorted({size - last + first for size, last in lasts})
    size = step.field.high - step.field.low + 1
    return [size - step.values[-1] + first]


def _is_even(values: tuple[int, ...], step: Step) -> bool:
    """Whether the whole list of the field has the same gap everywhere: ``*/40,20`` is ``*/20``."""
    if step.field is DAY_OF_MONTH:
        return len(values) == DAY_OF_MONTH.high
    size = step.field.high - step.field.low + 1
    after = (*values[1:], values[0] + size)
    return len({later - earlier for earlier, later in zip(values, after, strict=True)}) == 1


def _interval(fields: CronFields, step: Step) -> str:
    """The document's field ``every``, where it can stand for the whole schedule."""
    _, several, unit = _UNITS[step.field]
    if not unit:
        return f"; there is no interval of {several}"
    if not _may_be_interval(fields, step):
        return f"; every: {step.step}{unit} keeps the interval, without the rest of the schedule"
    phase = ", counted from startTime" if unit in "hd" else ""
    return f"; for an interval of {step.step} {several} write every: {step.step}{unit}{phase}"


def _may_be_interval(fields: CronFields, step: Step) -> bool:
    """Whether the step is all of its field, finer fields name one value, and coarser ones all."""
    columns = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
    finer = columns[: min(columns.index(step.field), 3)]
    coarser = [each for each in columns if each not in (*finer, step.field)]
    return (
        not fields.special
        and _values_of(fields, step.field) == tuple(step.values)
        and all(len(_values_of(fields, each)) == 1 for each in finer)
        and all(len(_values_of(fields, each)) == each.high - each.low + 1 for each in coarser)
    )


def _values_of(fields: CronFields, field: Field) -> tuple[int, ...]:
    return {
        SECOND: fields.seconds,
        MINUTE: fields.minutes,
        HOUR: fields.hours,
        DAY_OF_MONTH: fields.days,
        MONTH: fields.months,
        DAY_OF_WEEK: fields.weekdays,
    }[field]


def _named(field: Field, value: int) -> str:
    """A value as people read it: months and weekdays have names."""
    return field.names[value - field.low] if field.names else str(value)
