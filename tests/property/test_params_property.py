"""Whatever is given, it arrives as it was or does not leave, and no error is a raw one."""

from __future__ import annotations

import contextlib
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr, create_model

from tests.unit.model.travel import arrives, taking
from tests.unit.model.wire_types import Aliased, Animal, Colour, Dog, Level, Plain, Word
from tidework.errors import EnvelopeError, ParamsError

ATOMS: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(-(2**70), 2**70),
    float: st.floats(),
    str: st.text(max_size=5) | st.sampled_from(["2026-01-01", "PT5S", "5", "1.50", "red", "Zg=="]),
    bytes: st.binary(max_size=4),
    date: st.dates(),
    datetime: st.datetimes(
        timezones=st.none()
        | st.sampled_from([UTC, ZoneInfo("Europe/Amsterdam"), timezone(timedelta(hours=-5.5))])
    ),
    time: st.times(),
    timedelta: st.timedeltas(),
    UUID: st.uuids(),
    Decimal: st.decimals(),
    Path: st.sampled_from([Path("a"), Path("/b/c")]),
    Colour: st.sampled_from(Colour),
    Level: st.sampled_from(Level),
    Word: st.sampled_from(Word),
    Animal: st.builds(Animal, a=st.integers()) | st.builds(Dog, a=st.integers(), b=st.integers()),
    Plain: st.builds(Plain, st.integers(), st.lists(st.text(max_size=2), max_size=2)),
    Aliased: st.builds(lambda n: Aliased(y=n, zed=n, **{"in": n}), st.integers()),
    SecretStr: st.builds(SecretStr, st.text(max_size=3)),
    type(None): st.none(),
}
HASHABLE = (bool, int, str, bytes, date, datetime, UUID, Colour, Level, Word)
ANYTHING = st.one_of(*ATOMS.values())


@st.composite
def typed(draw: st.DrawFn, depth: int = 2) -> tuple[Any, Any]:
    """A type and a value of it."""
    kind = draw(st.sampled_from(["atom", "any", "union", "list", "dict", "tuple", "set", "model"]))
    if depth == 0 or kind == "atom":
        hint = draw(st.sampled_from(list(ATOMS)))
        return hint, draw(ATOMS[hint])
    if kind == "any":
        data = st.recursive(
            ANYTHING,
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.tuples(inner)
                | st.dictionaries(st.integers(0, 1) | st.sampled_from("01a"), inner, max_size=2)
            ),
            max_leaves=4,
        )
        return Any, draw(data)
    if kind == "union":
        hints = draw(st.lists(st.sampled_from(list(ATOMS)), min_size=2, max_size=3, unique=True))
        return eval_union(hints), draw(ATOMS[draw(st.sampled_from(hints))])
    if kind in ("dict", "set"):
        key = draw(st.sampled_from(HASHABLE))
        keys = st.frozensets(ATOMS[key], max_size=3)
        if kind == "set":
            return set[key], set(draw(keys))  # type: ignore[valid-type]
        inner, value = draw(typed(depth - 1))
        return dict[key, inner], dict.fromkeys(draw(keys), value)  # type: ignore[valid-type]
    inner, value = draw(typed(depth - 1))
    if kind == "list":
        return list.__class_getitem__(inner), [value] * draw(st.integers(0, 2))
    if kind == "tuple":
        return tuple.__class_getitem__((inner, int)), (value, 1)
    holder = create_model("Holder", x=(inner, ...))
    return holder, holder.model_construct(x=value)


def eval_union(hints: list[Any]) -> Any:
    found = hints[0]
    for hint in hints[1:]:
        found = found | hint
    return found


def shape_of(value: Any) -> Any:
    """Comparable, types included; written apart from the code that it tests."""
    if isinstance(value, BaseModel):
        return type(value), {name: shape_of(each) for name, each in vars(value).items()}
    if isinstance(value, Plain):
        return type(value), shape_of(vars(value))
    if isinstance(value, dict):
        return dict, [(shape_of(key), shape_of(each)) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [shape_of(each) for each in value]
    if isinstance(value, set):
        return set, sorted(repr(shape_of(each)) for each in value)
    if isinstance(value, datetime):
        return datetime, value.isoformat()
    if isinstance(value, SecretStr):
        return SecretStr, value.get_secret_value()
    return type(value), repr(value)


@pytest.mark.thorough
@given(typed())
@settings(max_examples=500, deadline=None)
def test_what_leaves_arrives_as_it_was(case: tuple[Any, Any]) -> None:
    hint, value = case
    with contextlib.suppress(ParamsError, EnvelopeError):
        found = arrives(taking(hint), value)["x"]
        # What the declared type makes of the value is what is sent.
        checked = taking(hint)._model.model_validate({"x": value}).__dict__["p_x"]
        assert shape_of(found) == shape_of(checked)
