"""The form of a schedule as one pattern, for the API server: what it refuses is never a schedule.

Made from the fields that the parser reads, in the syntax that Python and RE2 share. What a pattern
cannot know (a range that runs backwards, 30 February) is left to the parser.
"""

from __future__ import annotations

from tidework.model.schedules.cron_field import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    FIELDS,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    Field,
)

_BLANKS = "[ \\t]+"
_STEP = "(/0*[1-9][0-9]*)?"
_OF_MONTH = "L(-0*([1-9]|[12][0-9]|30))?|LW|0*([1-9]|[12][0-9]|3[01])W"

_NUMBERS = {
    SECOND: "[1-5]?[0-9]",
    MINUTE: "[1-5]?[0-9]",
    HOUR: "1?[0-9]|2[0-3]",
    DAY_OF_MONTH: "[1-9]|[12][0-9]|3[01]",
    MONTH: "[1-9]|1[0-2]",
    DAY_OF_WEEK: "[0-6]",
}
"""Without the zeros in front, which the parser allows."""


def _value(field: Field) -> str:
    names = f"|{'|'.join(field.names)}" if field.names else ""
    return f"(0*({_NUMBERS[field]}){names})"


def _list(field: Field) -> str:
    value = _value(field)
    element = f"([*?]|H(\\({value}(-{value})?\\))?|{value}(-{value})?){_STEP}"
    if field is DAY_OF_MONTH:
        element += f"|{_OF_MONTH}"
    elif field is DAY_OF_WEEK:
        element += f"|{value}(#0*[1-5]|L)"
    return f"({element})(,({element}))*"


FORM = (
    f"(?i)[ \\t]*({_list(SECOND)}{_BLANKS})?"
    + _BLANKS.join(_list(field) for field in FIELDS)
    + "[ \\t]*"
)
"""Pattern of the whole text. Letters of any case: a lower ``h`` is left to the parser."""

FORM_IN_WORDS = (
    "write minutes 0-59, hours 0-23, days 1-31, months 1-12 or JAN-DEC, weekdays 0-6 or SUN-SAT, "
    "as in '*', '1,2', '1-5', '*/5'"
)
