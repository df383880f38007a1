"""One field of a cron expression: its text in, its values out.

A field is a list of elements, each ``*``, ``?``, ``N`` or ``A-B``, with an optional ``/step``;
``N/step`` means from N to the field's end. Ranges never wrap round. Names are in any case, three
letters. Neither int() nor str.isdigit() sees text that is not plain ASCII digits, since both take
far more than a cron expression may hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tidework.errors import ScheduleError

_DIGITS = re.compile(r"[0-9]+\Z")
_FOREIGN_SYNTAX = re.compile(r"[LWHR#~]")
_STEP_HINT = "a step is a whole number from 1, as in */5"


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the expression: its bounds, and the names of its values if it has any."""

    title: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def named(self, text: str) -> int | None:
        """The value that ``text`` is the name of, in any case."""
        upper = text.upper()
        return self.low + self.names.index(upper) if upper in self.names else None

    @property
    def takes(self) -> str:
        """What may stand in the field, for hints."""
        names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"the {self.title} field takes {self.low}-{self.high}{names}"


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY_OF_MONTH = Field("day-of-month", 1, 31)
MONTH = Field(
    "month",
    1,
    12,
    ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
)
DAY_OF_WEEK = Field("day-of-week", 0, 6, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
FIELDS = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)


@dataclass(frozen=True, slots=True)
class FieldValues:
    """A parsed field.

    values:   sorted, without repetition, not empty
    star:     a bare ``*``, ``?`` or ``*/1`` is in its list (Kubernetes' rule for days)
    wildcard: an element begins with ``*`` or ``?``, whatever its step (Debian's rule for DST)
    """

    values: tuple[int, ...]
    star: bool
    wildcard: bool


def parse_field(expression: str, word: str, position: int, field: Field) -> FieldValues:
    """Parse ``word``, which stands at ``position`` of ``expression``; raises ScheduleError."""
    values: set[int] = set()
    star = wildcard = False
    for text, at in _split(word, ",", position):
        element = _Element(expression, text, at, field)
        span, whole = element.parse()
        values.update(span)
        star = star or whole
        wildcard = wildcard or text[0] in "*?"
    return FieldValues(tuple(sorted(values)), star, wildcard)


def _split(text: str, separator: str, position: int) -> Iterator[tuple[str, int]]:
    """The parts of ``text`` with their offsets in the whole expression."""
    for part in text.split(separator):
        yield part, position
        position += len(part) + 1


@dataclass(frozen=True, slots=True)
class _Element:
    """One element of a list, and what is needed to refuse it well."""

    expression: str
    text: str
    position: int
    field: Field

    def parse(self) -> tuple[range, bool]:
        """The values, and whether the element is a star."""
        if not self.text:
            raise self._refused("an empty list element", "remove the extra comma", self.position)
        parts = list(_split(self.text, "/", self.position))
        if len(parts) > 2:
            raise self._refused("two slashes", "write one step: 10-50/5", parts[2][1] - 1)
        stepped = len(parts) == 2
        step = self._step(*parts[1]) if stepped else 1
        span, at = parts[0]
        if span in ("*", "?"):
            return range(self.field.low, self.field.high + 1, step), step == 1
        low, high = self._bounds(span, at, open_ended=stepped)
        return range(low, high + 1, step), False

    def _bounds(self, span: str, at: int, *, open_ended: bool) -> tuple[int, int]:
        """First and last value of ``N`` or ``A-B``; open-ended, N means from N to the end."""
        if span.startswith("-"):
            raise self._refused("a value is missing before the hyphen", self.field.takes, at)
        ends = list(_split(span, "-", at))
        if len(ends) > 2:
            raise self._refused("two hyphens", "a range is written 10-20", ends[2][1] - 1)
        low = self._value(*ends[0])
        if len(ends) == 1:
            return low, self.field.high if open_ended else low
        high = self._value(*ends[1])
        if low > high:
            hint = "ranges do not wrap round: write two, as in 22-23,0-2"
            raise self._refused(f"the range {span} runs backwards", hint, at)
        return low, high

    def _value(self, text: str, at: int) -> int:
        if not _DIGITS.match(text):
            named = self.field.named(text)
            if named is None:
                raise self._no_value(text, at)
            return named
        value = _bounded_int(text)
        if value is None or not self.field.low <= value <= self.field.high:
            sunday = self.field is DAY_OF_WEEK and value == 7
            hint = "write 0 or SUN for Sunday" if sunday else self.field.takes
            raise self._refused(f"{text[:20]} is out of range", hint, at)
        return value

    def _step(self, text: str, at: int) -> int:
        if not _DIGITS.match(text):
            reason = f"{text!r} is not a step" if text else "the step is missing"
            raise self._refused(reason, _STEP_HINT, at)
        step = _bounded_int(text)
        if step is None:
            raise self._refused("the step is too large", _STEP_HINT, at)
        if step == 0:
            raise self._refused("the step is 0", _STEP_HINT, at)
        return step

    def _no_value(self, text: str, at: int) -> ScheduleError:
        """The refusal of a text that is neither a number nor a name of this field."""
        upper = text.upper()
        other = next((each for each in FIELDS if upper in each.names), None)
        reason = f"{text!r} is not a value of the {self.field.title} field"
        hint = self.field.takes
        if not text:
            reason = "a value is missing"
        elif text[0] in "*?":
            hint = f"{text[0]} stands alone or before a step, as in {text[0]}/5"
        elif text[0] == "+" and _DIGITS.match(text[1:]):
            hint = f"write {text[1:]} without the sign"
        elif upper.isalpha() and upper[:3] in self.field.names:
            hint = f"names have three letters: {upper[:3]}"
        elif other is not None:
            hint = f"{upper} belongs into the {other.title} field"
        elif _FOREIGN_SYNTAX.search(upper):
            hint = f"L, W, #, H, R and ~ are not supported here; {self.field.takes}"
        return self._refused(reason, hint, at)

    def _refused(self, reason: str, hint: str, position: int) -> ScheduleError:
        return ScheduleError(self.expression, reason, hint=hint, position=position)


def _bounded_int(text: str) -> int | None:
    """The value of ASCII digits; None for more of them than any field or step needs."""
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= 9 else None
