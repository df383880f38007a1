"""What arrives is what was sent, or it does not leave, wherever a value may stand."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack
from uuid import UUID, uuid4

import pytest
from pydantic import (
    BaseModel,
    Field,
    Json,
    PlainSerializer,
    SecretBytes,
    SecretStr,
    SerializeAsAny,
    Strict,
)

from tests.unit.model.travel import arrives, command_of, taking, taking_more, ways
from tests.unit.model.wire_types import (
    AMSTERDAM,
    KEY,
    NOON,
    Aliased,
    Animal,
    Asked,
    Box,
    ByNameAlone,
    Cached,
    Colour,
    Computed,
    Dog,
    Hexed,
    Keywords,
    Level,
    Open,
    Options,
    Order,
    OrderRecord,
    Pair,
    Plain,
    StrictOne,
    Tree,
    Word,
)
from tidework.errors import ParamsError
from tidework.model.command import CommandSignature
from tidework.model.values.secrets import StoredSecret
from tidework.model.values.signature import Signature


def changed(order: Order) -> Order:
    order.tags.append("a")
    return order


EXACT: list[tuple[Any, Any]] = [
    (Order, Order()),
    (Order, changed(Order())),
    (OrderRecord, OrderRecord()),
    (Plain, Plain(1, ["x"])),
    (Any, {"a": [1, 2.5, None, True, "x", {"b": []}]}),
    (dict, {"a": 1}),
    (list, [1, "a", None]),
    (object, "x"),
    (datetime | str, NOON),
    (datetime | str, "hello"),
    (datetime | str, "2026-01-01T00:00:00Z"),
    (str | datetime, NOON),
    (date | str, date(2026, 1, 2)),
    (date | str, "2026-01-02"),
    (UUID | str, KEY),
    (UUID | str, str(KEY)),
    (str | UUID, KEY),
    (Decimal | str, Decimal("1.50")),
    (Decimal | str, "1.50"),
    (Path | str, Path("a/b")),
    (Path | str, "a/b"),
    (str | Path, Path("a/b")),
    (timedelta | str, timedelta(seconds=5)),
    (timedelta | str, "PT5S"),
    (bytes | str, b"abcd"),
    (bytes | str, "abcd"),
    (Colour | str, Colour.RED),
    (Colour | str, "red"),
    (Word | str, Word.YES),
    (datetime | str | None, NOON),
    (datetime | int | str, 5),
    (datetime | bool | str, NOON),
    (Annotated[datetime | str, Field()], NOON),
    (date | datetime, datetime(2026, 1, 1)),  # noqa: DTZ001 - midnight, as a date is
    (int | float, 5),
    (int | float, 5.0),
    (Animal | str, Animal(a=1)),
    (Animal | Dog, Dog(a=1, b=2)),
    (datetime, NOON),
    (datetime, datetime(2026, 10, 25, 2, 30, tzinfo=AMSTERDAM)),
    (datetime, datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=AMSTERDAM)),
    (datetime, datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=-5, minutes=-30)))),
    (time, time(1, 2, 3, 4)),
    (timedelta, timedelta(days=-3, microseconds=1)),
    (
        StrictOne,
        StrictOne(at=NOON, key=KEY, colour=Colour.RED, raw=b"\xff", pair=(1, "a"), some={1}),
    ),
    (Annotated[datetime, Strict()], NOON),
    (Annotated[UUID, Strict()], KEY),
    (Aliased, Aliased.model_validate({"in": 1, "y": 2, "zed": 3, "double": 4})),
    (ByNameAlone, ByNameAlone(x=3)),
    (Computed, Computed(x=3)),
    (bytes, b"\xff\x00\xfb"),
    (bytes, b"text"),
    (bytes, b""),
    (Tree, Tree(name=b"\xff", children=[Tree(name=b"\xfe")])),
    (list[Animal | Plain], [Animal(a=1), Plain(2)]),
    (dict[int, int], {1: 2}),
    (dict[UUID, bytes], {KEY: b"\xff"}),
    (dict[date, int], {date(2026, 1, 1): 2}),
    (dict[bool, int], {True: 1}),
    (dict[Colour, int], {Colour.RED: 1}),
    (tuple[int, datetime], (1, NOON)),
    (tuple[int, ...], (1, 2)),
    (set[UUID], {KEY}),
    (frozenset[bytes], frozenset({b"\xff"})),
    (collections.deque[int], collections.deque([1, 2])),
    (Pair, Pair(1, NOON)),
    (Options, {"at": NOON}),
    (Open, Open(a=1, b=[2])),
    (Hexed, Hexed(raw=b"\xff")),
    (Keywords, Keywords(default=b"\xff", type=b"\xfe", fields={"type": b"\xfd"}, metadata=b"")),
    (Box[datetime], Box[datetime](inside=NOON)),
    (Literal["a", 1], 1),
    (Level, Level.HIGH),
    (IPv4Address, IPv4Address("127.0.0.1")),
    (Decimal, Decimal("1.00")),
    (float, -0.0),
    (int, 10**400),
    (Sequence[int], (1, 2)),
    (Mapping[str, datetime], {"a": NOON}),
    (StoredSecret, SecretStr("x")),
    (Annotated[SecretBytes, PlainSerializer(SecretBytes.get_secret_value)], SecretBytes(b"x")),
    (SerializeAsAny[Animal], Animal(a=1)),
]


@pytest.mark.parametrize(("hint", "value"), EXACT)
def test_a_value_arrives_as_it_was_sent(hint: Any, value: Any) -> None:
    for place, arrive in ways(hint, value):
        found = arrive()

        if hint == Sequence[int]:
            assert tuple(found) == value, place
            continue
        assert found == value or isinstance(value, datetime), place
        assert type(found) is type(value), place
        shown = repr(found).replace("TzInfo(0)", "datetime.timezone.utc")
        assert shown == repr(value) or isinstance(value, datetime), place
        if isinstance(value, datetime):
            assert found.isoformat() == value.isoformat(), place


@pytest.mark.parametrize(
    ("hint", "value", "found"),
    [
        (datetime | str, NOON, "2026-03-04T12:00:00.123456Z"),
        (bytes, b"\xff\xfe", "__4="),
        (Order, Order(key=KEY), {"key": str(KEY), "tags": []}),
        (float, 1, 1.0),
    ],
)
def test_a_command_reads_the_wire_form(hint: Any, value: Any, found: Any) -> None:
    assert arrives(command_of(hint), x=value) == {"x": found}


def test_what_a_factory_makes_is_the_same_in_every_attempt() -> None:
    class Params(BaseModel):
        key: UUID = Field(default_factory=uuid4)
        size: int = 5

    def by_default(key: UUID = Field(default_factory=uuid4), size: int = Field(5)) -> None: ...  # noqa: B008

    def annotated(key: Annotated[UUID, Field(default_factory=uuid4)]) -> None: ...

    for signature in (
        CommandSignature("c", Params),
        Signature("t", by_default),
        Signature("t", annotated),
    ):
        params = signature.to_params((), {})
        assert list(params) == ["key"]
        first, second = signature.to_arguments(params), signature.to_arguments(params)
        assert first == second
        assert str(first["key"]) == params["key"]
    # A document of somebody else need not have them.
    assert Signature("t", by_default).to_arguments({})["size"] == 5
    assert isinstance(Signature("t", annotated).to_arguments({})["key"], UUID)


def test_json_within_json_arrives() -> None:
    class Holder(BaseModel):
        x: Json[list[int]]

    assert arrives(taking(Json[list[int]]), "[1,2]") == {"x": [1, 2]}
    assert arrives(taking(Holder), Holder(x="[1]"))["x"] == Holder(x="[1]")


def test_keywords_have_their_declared_type() -> None:
    assert arrives(taking_more(datetime), a=NOON) == {"a": NOON}
    assert arrives(taking_more(Unpack[Options]), at=NOON) == {"at": NOON}
    with pytest.raises(ParamsError, match="other"):
        arrives(taking_more(Unpack[Options]), other=1)
    with pytest.raises(ParamsError, match="at: Field required"):
        arrives(taking_more(Unpack[Asked]))


def test_an_iterable_arrives_as_a_list() -> None:
    assert arrives(taking(Iterable[int]), (n for n in (1, 2))) == {"x": [1, 2]}
    assert arrives(taking(Iterable[int]), {3}) == {"x": [3]}


def test_bytes_of_others_may_use_either_alphabet_of_base64() -> None:
    assert taking(bytes).to_arguments({"x": "//8="}) == taking(bytes).to_arguments({"x": "__8="})
    with pytest.raises(ParamsError, match="x: "):
        taking(bytes).to_arguments({"x": "no base64!"})


def test_a_document_of_others_is_read_as_pydantic_reads_it() -> None:
    assert taking(datetime | str).to_arguments({"x": "tomorrow"}) == {"x": "tomorrow"}
    later = taking(datetime | str).to_arguments({"x": "tomorrow"}, "a word of a later version")
    assert later == {"x": "tomorrow"}


def test_a_cached_property_and_private_attributes_stay_behind() -> None:
    given = Cached(x=1)
    given._seen = 5

    assert arrives(taking(Cached), given)["x"].x == 1


def test_a_model_that_is_complete_only_later_is_read_then() -> None:
    class Later(BaseModel):
        inner: Missing

    signature = taking(Later)

    class Missing(BaseModel):
        raw: bytes

    Later.model_rebuild()
    value = Later(inner=Missing(raw=b"\xff"))
    assert arrives(signature, value) == {"x": value}


def test_a_command_reads_what_its_model_computes() -> None:
    assert arrives(CommandSignature("c", Computed), x=3) == {"x": 3, "double": 6}
