"""Params of a call on their way into an envelope and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tidework.errors import ParamsError
from tidework.model.job import Job
from tidework.model.values.params import EncodedParams, encode_params
from tidework.model.values.signature import Signature


class Point(BaseModel):
    x: float = 0.0


def plain(number: int, text: str = "", *, share: float | None = None, sure: bool = False) -> None:
    """Scalars only."""


def mixed(day: date, points: list[Point], extra: Any = None) -> None:
    """Everything else."""


def generous(number: int, **more: Any) -> None:
    """Takes whatever comes."""


def bounded(number: int = Field(5, ge=0), text: Annotated[str, Field(max_length=3)] = "") -> None:
    """With rules of pydantic."""


def params_of(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return json.loads(encode_params(Signature("t", function).to_params(args, kwargs)))


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "found"),
    [
        (plain, (1,), {}, {"number": 1}),
        (
            plain,
            ("7", "x"),
            {"share": 1, "sure": 1},
            {"number": 7, "text": "x", "share": 1.0, "sure": True},
        ),
        (plain, (), {"share": None, "number": 2.0}, {"number": 2, "share": None}),
        (plain, (1, 'quo"te\n\u00fc\u2028'), {}, {"number": 1, "text": 'quo"te\n\u00fc\u2028'}),
        (plain, (10**400,), {}, {"number": 10**400}),
        (plain, (1, "NaN and Infinity"), {}, {"number": 1, "text": "NaN and Infinity"}),
        (
            mixed,
            (date(2026, 1, 2), [Point(x=1)]),
            {"extra": {"1": [2]}},
            {"day": "2026-01-02", "points": [{"x": 1.0}], "extra": {"1": [2]}},
        ),
        (
            mixed,
            (date(2026, 1, 2), iter([{"x": 5}])),
            {},
            {"day": "2026-01-02", "points": [{"x": 5}]},
        ),
        (generous, (1,), {"a": [1], "p_number": 2}, {"number": 1, "a": [1], "p_number": 2}),
        (bounded, (), {"number": 3}, {"number": 3}),
    ],
)
def test_what_travels(
    function: Callable[..., Any], args: Any, kwargs: Any, found: dict[str, Any]
) -> None:
    assert params_of(function, *args, **kwargs) == found


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "told"),
    [
        (plain, (), {}, "missing a required argument: 'number'"),
        (plain, (1, "x", 2), {}, "too many positional arguments"),
        (plain, (1,), {"number": 2}, "multiple values for argument 'number'"),
        (plain, (1,), {"other": 2}, "unexpected keyword argument 'other'"),
        (plain, ("x",), {"sure": "perhaps"}, "number: Input should be a valid integer.*; sure: "),
        (plain, (), {"number": "x", "other": 1}, "unexpected keyword argument 'other'"),
        (plain, (True, b"\xff"), {}, "text: Input should be a valid string"),
        (mixed, ("yesterday", []), {}, "day: "),
        (mixed, (date(2026, 1, 2), iter([{"x": "no"}])), {}, "points.0.x: "),
        (mixed, (date(2026, 1, 2), []), {"extra": object()}, "not JSON data"),
        (generous, (), {"a": 1}, "missing a required argument: 'number'"),
        (bounded, (-1,), {}, "number: Input should be greater than"),
        (bounded, (), {"text": "long"}, "text: String should have at most 3"),
    ],
)
def test_what_does_not_fit_is_told_as_a_call_would(
    function: Callable[..., Any], args: Any, kwargs: Any, told: str
) -> None:
    with pytest.raises(ParamsError, match=told):
        Signature("t", function).to_params(args, kwargs)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_has_not_are_refused(value: float) -> None:
    with pytest.raises(ParamsError, match=r"^params of task 't': share: .* is not JSON data"):
        params_of(plain, 1, share=value)
    with pytest.raises(ParamsError, match=r"points\.0\.x: .* is not JSON data"):
        params_of(mixed, date(2026, 1, 2), [Point.model_construct(x=value)])


@pytest.mark.parametrize("args", [(1, "\ud800"), (10**5000,)])
def test_what_no_reader_takes_is_refused(args: Any) -> None:
    with pytest.raises(ParamsError, match=r"not JSON data|cannot be read back"):
        params_of(plain, *args)


@pytest.mark.parametrize("rows", [[{1: 2}], [5], [[("number", 1)]]])
def test_params_that_are_no_named_values_are_refused(rows: list[Any]) -> None:
    with pytest.raises(ParamsError):
        Signature("t", plain).to_params((), rows[0])


@pytest.mark.parametrize("function", [plain, bounded])
def test_arguments_are_what_was_given_in_the_right_types(function: Callable[..., Any]) -> None:
    signature = Signature("t", function)

    assert signature.to_arguments({"number": "7"}) == {"number": 7}
    with pytest.raises(ParamsError, match="other: Extra inputs are not permitted"):
        signature.to_arguments({"number": 1, "other": 2})


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(ParamsError, match="number: Field required"):
        Signature("t", plain).to_arguments({})


def test_encoded_params_are_a_mapping_like_any_other() -> None:
    params = Signature("t", plain).to_params((1,), {"text": "x"})

    assert isinstance(params, EncodedParams)
    assert params == {"number": 1, "text": "x"}
    assert (len(params), list(params), params["text"]) == (2, ["number", "text"], "x")
    assert "x" in repr(params)
    assert Job("a", "t", params).encode() == Job("a", "t", dict(params)).encode()


class Own(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __getitem__(self, name: str) -> Any:
        return {"number": 3}[name]

    def __iter__(self) -> Iterator[str]:
        return iter(("number",))

    def __len__(self) -> int:
        return 1


def test_any_mapping_may_name_the_params() -> None:
    assert Signature("t", plain).to_params((), Own()) == {"number": 3}
