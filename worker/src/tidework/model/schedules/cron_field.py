"""One field of a cron expression: its text in, its values out.

A field is a list of elements, each ``*``, ``?``, ``N``, ``A-B``, ``H`` or ``H(A-B)``, with an
optional ``/step``; ``N/step`` means from N to the field's end. ``H`` is a value that a hash of the
CronTask's name chooses, so that crowds spread. The days have forms of their own (cron_special).
Ranges never wrap round. Names are in any case, three letters. Neither int() nor str.isdigit() sees
text that is not plain ASCII digits, since both take far more than a cron expression may hold.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tidework.errors import ScheduleError
from tidework.model.schedules.cron_special import (
    LAST_ONE,
    LAST_WEEKDAY,
    OF_MONTH,
    OF_WEEK,
    SpecialDay,
    SpecialKind,
)

_DIGITS = re.compile(r"[0-9]+\Z")
_HASHED = re.compile(r"H(?:\((?P<bounds>[^()]*)\))?\Z")
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


SECOND = Field("second", 0, 59)
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

# H alone leaves the last days of the month out, which not every month has.
_LAST_HASHED_DAY = 28


@dataclass(frozen=True, slots=True)
class FieldValues:
    """A parsed field.

    values:   sorted, without repetition; empty only beside special days
    star:     a bare ``*``, ``?`` or ``*/1`` is in its list (Kubernetes' rule for days)
    wildcard: an element begins with ``*`` or ``?``, whatever its step (Debian's rule for DST)
    special:  days that depend on the month, sorted
    """

    values: tuple[int, ...]
    star: bool
    wildcard: bool
    special: tuple[SpecialDay, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """An expression, and what ``H`` in it is hashed from: None where there is no name."""

    expression: str
    spread: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """An element with a step of more than 1, as it is written, and the values that it names.

    whole: a ``*``, ``?`` or ``H`` without bounds stands before the step, or a range from near the
           field's start to its end, so that the next round of the field follows at once
    """

    field: Field
    text: str
    step: int
    values: range
    whole: bool


def steps_in(text: Text, word: str, position: int, field: Field) -> Iterator[Step]:
    """The steps that ``word`` was written with; raises ScheduleError as parse_field does."""
    for part, at in _split(word, ",", position):
        element = _Element(text, part, at, field)
        if "/" in part:
            values, _ = element.parse()
            step = values.step
            near_start = values[0] - field.low < step
            whole = near_start and values[-1] + step > field.high
            if step > 1:
                yield Step(field, part, step, values, whole)


def parse_field(text: Text, word: str, position: int, field: Field) -> FieldValues:
    """Parse ``word``, which stands at ``position`` of the expression; raises ScheduleError."""
    values: set[int] = set()
    special: set[SpecialDay] = set()
    star = wildcard = False
    for part, at in _split(word, ",", position):
        element = _Element(text, part, at, field)
        day = element.special_day()
        if day is not None:
            special.add(day)
            continue
        span, whole = element.parse()
        values.update(span)
        star = star or whole
        wildcard = wildcard or part[0] in "*?"
    return FieldValues(tuple(sorted(values)), star, wildcard, tuple(sorted(special)))


def _split(text: str, separator: str, position: int) -> Iterator[tuple[str, int]]:
    """The parts of ``text`` with their offsets in the whole expression."""
    for part in text.split(separator):
        yield part, position
        position += len(part) + 1


@dataclass(frozen=True, slots=True)
class _Element:
    """One element of a list, and what is needed to refuse it well."""

    source: Text
    text: str
    position: int
    field: Field

    def special_day(self) -> SpecialDay | None:
        """The day that depends on the month; None if the element is of another form."""
        upper = self.text.upper()
        if self.field is DAY_OF_MONTH and (found := OF_MONTH.fullmatch(upper)):
            return self._of_month(found)
        if self.field is DAY_OF_WEEK and (found := OF_WEEK.fullmatch(upper)):
            return self._of_week(found)
        return None

    def _of_month(self, found: re.Match[str]) -> SpecialDay:
        if near := found["near"]:
            day = LAST_WEEKDAY if near == "L" else self._value(near, self.position)
            return SpecialDay(SpecialKind.NEAREST, day)
        before = _bounded_int(found["before"] or "0")
        if before is None or before > 30 or found["before"] == "0":
            hint = "L is the last day, L-1 the one before, L-30 the first of a long month"
            raise self._refused(f"{self.text[:20]} is not a day of any month", hint, self.position)
        return SpecialDay(SpecialKind.BEFORE_LAST, before)

    def _of_week(self, found: re.Match[str]) -> SpecialDay:
        weekday = self._value(found["weekday"], self.position)
        if found["nth"] is None:
            return SpecialDay(SpecialKind.NTH, LAST_ONE, weekday)
        nth = _bounded_int(found["nth"])
        if nth is None or not 1 <= nth <= 5:
            hint = "a month has a weekday five times at most: #1 to #5, or FRIL for the last Friday"
            at = self.position + found.start("nth")
            raise self._refused(f"#{found['nth'][:20]} is out of range", hint, at)
        return SpecialDay(SpecialKind.NTH, nth, weekday)

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
        if hashed := _HASHED.match(span):
            return self._hashed(hashed, at, step if stepped else None), False
        low, high = self._bounds(span, at, open_ended=stepped)
        return range(low, high + 1, step), False

    def _hashed(self, found: re.Match[str], at: int, step: int | None) -> range:
        """One value of the bounds; with a step that one and those a step on, from the first."""
        if self.source.spread is None:
            hint = "it stands in CronTask documents; on the command line give --name NAMESPACE/NAME"
            raise self._refused("H is spread by a name, and there is none", hint, at)
        low, high = self.field.low, self.field.high
        if found["bounds"] is not None:
            low, high = self._bounds(found["bounds"], at + 2, open_ended=False)
        elif self.field is DAY_OF_MONTH and step is None:
            high = _LAST_HASHED_DAY
        size = high - low + 1
        first = low + self._hash() % (size if step is None else min(step, size))
        return range(first, first + 1) if step is None else range(first, high + 1, step)

    def _hash(self) -> int:
        """The same on every machine, another one for each field."""
        digest = hashlib.sha256(f"{self.source.spread}\n{self.field.title}".encode()).digest()
        return int.from_bytes(digest[:8], "big")

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
        hint = self._foreign(upper) or self.field.takes
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
        return self._refused(reason, hint, at)

    def _foreign(self, upper: str) -> str:
        """A hint for what other crons write, and here is written otherwise or elsewhere."""
        if "~" in upper or upper == "R":
            return "a value chosen once for all is written H, or H(0-29) within bounds"
        if upper.startswith("H"):
            return "H stands alone, with bounds as in H(0-29), or before a step as in H/15"
        weekday = self.field is DAY_OF_WEEK
        if "#" in upper or (weekday and re.fullmatch(r"L[0-6]?", upper)):
            return "the day-of-week field takes FRI#2 for the second Friday, FRIL for the last one"
        if "L" in upper or upper.endswith("W"):
            return "the day-of-month field takes L, L-3, LW and 15W, each alone or within a list"
        return ""

    def _refused(self, reason: str, hint: str, position: int) -> ScheduleError:
        return ScheduleError(self.source.expression, reason, hint=hint, position=position)


def _bounded_int(text: str) -> int | None:
    """The value of ASCII digits; None for more of them than any field or step needs."""
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= 9 else None
