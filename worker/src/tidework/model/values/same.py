"""Is what was read back what was sent? Of the same types throughout, not merely equal.

``1 == True``, a text equals a member of its StrEnum, and a model may call a part of itself equal:
none of these is what was sent. Times with a zone are compared by clock and offset, since JSON
carries the offset and not the zone's name.

It runs at every enqueue whose params are more than plain scalars, hence a table by type.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel

_Step = str | int
_JSON_TYPES = frozenset({bool, str, int, float, dict})


class Difference(NamedTuple):
    """The first place at which two values differ; ``path`` leads there from the outside."""

    path: tuple[_Step, ...]
    sent: Any
    found: Any

    def below(self, step: _Step) -> Difference:
        """The same, seen from one level further out."""
        return Difference((step, *self.path), self.sent, self.found)


class Comparison:
    """How exact a value has to come back.

    sequences: a tuple may come back as a list (the declared type is Sequence)
    json_like: so may a subclass of text, number and dict as its plain type
    """

    def __init__(self, *, sequences: bool = False, json_like: bool = False) -> None:
        self._sequences = sequences or json_like
        self._json_like = json_like

    def find(self, sent: Any, found: Any) -> Difference | None:
        """None if they are the same."""
        if sent is found:
            return None
        kind = type(found)
        if kind is not type(sent) and not self._may_pass(sent, found):
            return Difference((), sent, found)
        if kind in _EQUAL:
            return None if sent == found else Difference((), sent, found)
        return _rule_for(kind)(self, sent, found)

    def _may_pass(self, sent: Any, found: Any) -> bool:
        if self._sequences and type(sent) is tuple and type(found) is list:
            return True
        plain = type(found)
        return self._json_like and plain in _JSON_TYPES and isinstance(sent, plain)

    def mapping(self, sent: Mapping[Any, Any], found: Mapping[Any, Any]) -> Difference | None:
        """Two of a mapping's type: keys in the same order, since JSON keeps it."""
        if len(sent) != len(found):
            return Difference((), sent, found)
        for (key, value), (key_found, value_found) in zip(sent.items(), found.items(), strict=True):
            if self.find(key, key_found):
                return Difference((_step(key),), key, key_found)
            if (inside := self.find(value, value_found)) is not None:
                return inside.below(_step(key))
        return None

    def row(self, sent: Any, found: Any) -> Difference | None:
        """Two lists, tuples or the like."""
        if len(sent) != len(found):
            return Difference((), sent, found)
        for place, (value, value_found) in enumerate(zip(sent, found, strict=True)):
            if (inside := self.find(value, value_found)) is not None:
                return inside.below(place)
        return None

    def attributes(self, names: Iterable[str], sent: Any, found: Any) -> Difference | None:
        """Two objects that consist of these."""
        for name in names:
            here = getattr(sent, name, dataclasses.MISSING)
            there = getattr(found, name, dataclasses.MISSING)
            if (inside := self.find(here, there)) is not None:
                return inside.below(name)
        return None


_Rule = Callable[[Comparison, Any, Any], Difference | None]
_EQUAL = frozenset({str, int, bool, type(None), bytes, UUID, date, timedelta})
"""Types whose equal values are the same value."""
_MOST_RULES_KEPT = 1000


def _rule_for(kind: type) -> _Rule:
    rule = _RULES.get(kind)
    if rule is None:
        rule = _rule_of(kind)
        if len(_RULES) < _MOST_RULES_KEPT:
            _RULES[kind] = rule
    return rule


def _rule_of(kind: type) -> _Rule:
    if issubclass(kind, BaseModel):
        return _model_rule(kind)
    if dataclasses.is_dataclass(kind):
        names = tuple(each.name for each in dataclasses.fields(kind))
        return lambda compare, sent, found: compare.attributes(names, sent, found)
    if issubclass(kind, Mapping):
        return Comparison.mapping
    if issubclass(kind, (list, tuple)):
        return Comparison.row
    if issubclass(kind, Enum):
        return _judged(lambda _sent, _found: False)  # another member, or it were the same object
    for known, is_same in _JUDGES:
        if issubclass(kind, known):
            return _judged(is_same)
    if kind.__eq__ is object.__eq__ and hasattr(kind, "__dict__"):
        return lambda compare, sent, found: compare.mapping(_state(sent), _state(found))
    return _judged(_call_each_other_equal)


def _model_rule(kind: type[BaseModel]) -> _Rule:
    # Not all of __dict__: cached properties lie there as well.
    names = tuple(kind.model_fields)
    may_have_more = kind.model_config.get("extra") == "allow"

    def compare_models(compare: Comparison, sent: BaseModel, found: BaseModel) -> Difference | None:
        here, there = sent.__dict__, found.__dict__
        for name in names:
            if (inside := compare.find(here.get(name), there.get(name))) is not None:
                return inside.below(name)
        return compare.mapping(sent.model_extra or {}, found.model_extra or {})

    def compare_fields(compare: Comparison, sent: BaseModel, found: BaseModel) -> Difference | None:
        here, there = sent.__dict__, found.__dict__
        for name in names:
            if (inside := compare.find(here.get(name), there.get(name))) is not None:
                return inside.below(name)
        return None

    return compare_models if may_have_more else compare_fields


def _judged(is_same: Callable[[Any, Any], bool]) -> _Rule:
    def rule(_compare: Comparison, sent: Any, found: Any) -> Difference | None:
        return None if is_same(sent, found) else Difference((), sent, found)

    return rule


def _same_time(sent: Any, found: Any) -> bool:
    offset = sent.utcoffset()
    if offset != found.utcoffset():
        return False
    if offset is None and sent.fold != found.fold:
        return False  # with an offset it says nothing more
    # Two zones never agree on a moment that comes twice (PEP 495): compare what they show.
    return bool(sent == found or sent.replace(tzinfo=None) == found.replace(tzinfo=None))


def _same_float(sent: float, found: float) -> bool:
    return sent == found or (math.isnan(sent) and math.isnan(found))


def _same_decimal(sent: Decimal, found: Decimal) -> bool:
    return sent.as_tuple() == found.as_tuple()


def _same_set(sent: AbstractSet[Any], found: AbstractSet[Any]) -> bool:
    return sent == found and Counter(map(type, sent)) == Counter(map(type, found))


def _call_each_other_equal(sent: Any, found: Any) -> bool:
    try:
        return bool(sent == found)
    except Exception:  # noqa: BLE001 - its own comparison, or no truth value (an array)
        return False


_JUDGES: tuple[tuple[type, Callable[[Any, Any], bool]], ...] = (
    (datetime, _same_time),
    (time, _same_time),
    (float, _same_float),
    (Decimal, _same_decimal),
    (AbstractSet, _same_set),
)
_RULES: dict[type, _Rule] = {}


def _state(value: object) -> dict[str, Any]:
    return vars(value) if hasattr(value, "__dict__") else {}


def _step(key: object) -> _Step:
    return key if isinstance(key, (str, int)) else repr(key)
