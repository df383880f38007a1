"""What would arrive as something else is refused: where it is declared, or where it is sent."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import (
    Field,
    SecretBytes,
    SecretStr,
    SerializeAsAny,
)

from tests.unit.model.travel import arrives, command_of, taking, ways
from tests.unit.model.wire_types import (
    AMSTERDAM,
    NOON,
    Animal,
    Dog,
    Excluding,
    Hashed,
    MadeLater,
    Moody,
    Open,
    Order,
    Pathed,
    Plain,
    PlainDog,
    Word,
)
from tidework.errors import ConfigurationError, ParamsError
from tidework.model.command import CommandSignature
from tidework.model.values.signature import Signature

NAN, INF = float("nan"), float("inf")

REFUSED: list[tuple[Any, Any, str]] = [
    (SecretStr, SecretStr("hidden"), r"StoredSecret"),
    (SecretBytes, SecretBytes(b"hidden"), r"StoredSecret"),
    (Any, SecretStr("hidden"), r"StoredSecret"),
    (Any, {"a": [SecretStr("hidden")]}, r"a\.0: .*StoredSecret"),
    (Animal, Dog(a=1, b=2), "declare its type as Dog"),
    (SerializeAsAny[Animal], Dog(a=1, b=2), "declare its type as Dog"),
    (Plain, PlainDog(1, b=2), "declare its type as PlainDog"),
    (Any, Animal(a=1), "declare its type as Animal"),
    (Any, NOON, "declare its type as datetime"),
    (Any, b"x", "declare its type as bytes"),
    (Any, (1, 2), "declare its type as tuple"),
    (Any, {1, 2}, "declare its type as set"),
    (Any, Word.YES, "declare its type as Word"),
    (Any, NAN, "nan is not JSON data"),
    (Any, [1, {"a": INF}], r"1\.a: inf is not JSON data"),
    (object, NAN, "nan is not JSON data"),
    (list, [-INF], "-inf is not JSON data"),
    (dict, {"a": NAN}, "a: nan is not JSON data"),
    (tuple, (NAN,), "nan is not JSON data"),
    (float, NAN, "nan is not JSON data"),
    (float | None, INF, "inf is not JSON data"),
    (dict, {1: "a", "1": "b"}, "two are the same text"),
    (Any, {1: "a", "1": "b"}, "two are the same text"),
    (Any, {True: 1, "true": 2}, "two are the same text"),
    (Any, {1: "a"}, "1 would arrive as '1'"),
    (dict[int | str, int], {1: 1, "1": 2}, "two are the same text"),
    (dict[str | None, int], {None: 1}, "None"),
    (datetime, datetime(1900, 1, 1, tzinfo=AMSTERDAM), r"astimezone\(UTC\)"),
    (list[Path | str], [Path("a"), "b"], "would arrive as"),
    (Any, object(), "not JSON data"),
    (Hashed, Hashed.model_construct(x="a"), "'a' would arrive as 'hash of a'"),
    (Moody, Moody(x=1), "1 would arrive as 2"),
    (str, "\ud800", "not JSON data"),
    (Open, Open(b=NAN), "b: nan is not JSON data"),
]


@pytest.mark.parametrize(("hint", "value", "told"), REFUSED)
def test_what_would_arrive_as_something_else_is_refused(hint: Any, value: Any, told: str) -> None:
    for place, arrive in ways(hint, value):
        with pytest.raises(ParamsError, match=told) as refused:
            arrive()
        name = "a" if place == "kwargs" else "x"
        assert str(refused.value).startswith(
            ("params of task 't': " + name, "params of task 't': ")
        ), place
        assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(("hint", "value", "told"), [case for case in REFUSED if case[0] is Any])
def test_a_command_is_refused_what_would_arrive_as_something_else(
    hint: Any, value: Any, told: str
) -> None:
    for signature in (CommandSignature("c", None), command_of(hint)):
        with pytest.raises(ParamsError, match=told):
            arrives(signature, x=value)


@pytest.mark.parametrize(
    ("hint", "told"),
    [
        (Annotated[int, Field(exclude=True)], r"\.x is declared with exclude=True"),
        (Excluding, r"task 't': Excluding\.x is declared with exclude=True"),
        (list[Excluding | None], r"Excluding\.x"),
        (dict[tuple[int, int], int], "a key of type tuple"),
        (dict[None, int], "a key of type none"),
        (dict[Animal, int], "a key of type model"),
        (Pathed, r"Pathed\.x is read from a path alone"),
    ],
)
def test_a_type_that_cannot_travel_is_refused_where_it_is_declared(hint: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        taking(hint)
    with pytest.raises(ConfigurationError, match=told.replace("task 't'", "command 'c'")):
        command_of(hint)


def test_what_was_changed_into_a_wrong_type_is_refused() -> None:
    order = Order()
    order.tags = "no list"  # type: ignore[assignment]

    with pytest.raises(ParamsError, match=r"x\.tags: .*valid array"):
        arrives(taking(Order), order)


def test_a_command_is_told_of_a_param_that_its_model_would_ignore() -> None:
    with pytest.raises(ParamsError, match="y: no such param of Holder; it has: x"):
        arrives(command_of(int), x=1, y=2)


def test_a_field_that_no_caller_can_give_is_refused() -> None:
    with pytest.raises(ParamsError, match=r"x\.key: its JSON .* cannot be read back"):
        arrives(taking(MadeLater), MadeLater(1))


def test_a_param_that_cannot_be_written_is_named() -> None:
    def function(first: int, second: Any) -> None: ...

    with pytest.raises(ParamsError, match="second: not JSON data"):
        arrives(Signature("t", function), 1, object())
