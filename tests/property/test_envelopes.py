"""The quick ways into an envelope and out of it give what the slow ones give, whatever comes."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.inbox_documents import documents, good_documents, values
from tidework.errors import EnvelopeError, TideworkError
from tidework.model.job import Job, decode_job, decode_stored_job
from tidework.model.values.params import encode_params
from tidework.model.values.signature import Signature

KINDS: list[Any] = [int, str, float, bool, int | None, str | None, float | None, bool | None]
KINDS += [list[int], list[str | None], dict[str, float], dict[str, list[bool]] | None]
NAMES = ("number", "text", "schema", "model_config", "\u00fc")
NUMBERS = st.one_of(
    st.floats(allow_nan=True), st.integers(-(2**70), 2**70), st.just(10**5000), st.booleans()
)
GIVEN = st.one_of(
    NUMBERS,
    st.none(),
    st.text(max_size=20),
    st.binary(max_size=5),
    st.decimals(),
    st.sampled_from(["7", "1.5", "yes", "null", "NaN", "Infinity", "\ud800", "x" * 5000]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.floats() | st.lists(st.booleans(), max_size=2)),
)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=5)
    | st.sampled_from(["7", "1.5", "yes", "null", "NaN", "Infinity", "x" * 5000]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=2), inner)
    ),
    max_leaves=4,
)


@st.composite
def functions(draw: st.DrawFn) -> Callable[..., Any]:
    """Of up to three parameters, some with a default, some to be named."""
    names = draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))
    positional = draw(st.integers(0, len(names)))
    have_default = False
    parameters = []
    for place, name in enumerate(names):
        is_first = place < positional
        have_default = draw(st.booleans()) or (have_default and is_first)
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD
                if is_first
                else inspect.Parameter.KEYWORD_ONLY,
                default=None if have_default else inspect.Parameter.empty,
                annotation=draw(st.sampled_from(KINDS)),
            )
        )

    def function(**_: Any) -> None:
        """Never called."""

    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in parameters}
    return function


def said(act: Callable[[], Any]) -> Any:
    """What it returns, or the error's kind and text."""
    try:
        return act()
    except TideworkError as error:
        return type(error), str(error)


def without_shortcut(function: Callable[..., Any]) -> Signature:
    found = Signature("t", function)
    found._scalars = None
    return found


@pytest.mark.thorough
@given(
    functions(),
    st.lists(GIVEN, max_size=3),
    st.dictionaries(st.sampled_from(NAMES), GIVEN),
    st.dictionaries(st.sampled_from(NAMES), PLAIN),
)
@settings(max_examples=500)
def test_params_of_scalars_are_those_that_the_model_makes(
    function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], found: dict[str, Any]
) -> None:
    def params(signature: Signature) -> Any:
        # Written by the model and our encoder a float may look different: it reads alike.
        return json.loads(encode_params(signature.to_params(tuple(args), kwargs)))

    slow, quick = without_shortcut(function), Signature("t", function)

    assert said(lambda: params(quick)) == said(lambda: params(slow))
    assert same(said(lambda: quick.to_arguments(found)), said(lambda: slow.to_arguments(found)))


def same(one: Any, other: Any) -> bool:
    """NaN is itself here, True is not 1."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other) if isinstance(one, float) else bool(one == other)


@given(
    id=st.text(max_size=30),
    task=st.text(max_size=30),
    priority=st.integers(-1, 10),
    created_at=st.one_of(st.floats(), st.integers(0, 2**70)),
    available_at=st.none() | st.floats(),
    max_attempts=st.none() | st.integers(0, 2000),
    timeout=st.none() | st.floats(),
    trace=st.none() | st.just({"a": "b"}),
)
@settings(max_examples=300)
def test_an_envelope_reads_as_the_job_it_is_of(**fields: Any) -> None:
    job = Job(params={"n": 1}, **fields)

    try:
        raw = job.encode()
    except EnvelopeError:
        floats = (job.created_at, job.available_at, job.timeout)
        odd = any(isinstance(each, float) and not math.isfinite(each) for each in floats)
        assert odd or any("\ud800" <= each <= "\udfff" for each in (*job.id, *job.task))
        return

    found = json.loads(raw)
    wanted = {name: value for name, value in fields.items() if value is not None}
    if wanted["priority"] == 5:
        del wanted["priority"]
    assert found == {"v": 1, **wanted, "params": {"n": 1}}
    assert list(found)[-1] == "params"


@pytest.mark.thorough
@given(documents())
@settings(max_examples=400)
def test_a_valid_document_reads_alike_from_a_queue(raw: bytes) -> None:
    try:
        job = decode_job(raw, new_id="unnamed", now=0.0)
    except EnvelopeError:
        # Not every fault of the JSON is looked for again, but none of another kind comes up.
        said(lambda: decode_stored_job(raw))
        return

    assert same(decode_stored_job(raw), job)


@given(good_documents(), st.booleans())
def test_a_good_document_reads_alike_from_a_queue(document: dict[str, Any], escaped: bool) -> None:
    raw = json.dumps(document, ensure_ascii=escaped).encode()

    assert same(decode_stored_job(raw), decode_job(raw, new_id="unnamed", now=0.0))


@given(st.dictionaries(st.text(max_size=5), values(), max_size=4))
def test_our_own_envelope_reads_alike_from_a_queue(params: dict[str, Any]) -> None:
    job = Job("a", "t", params, created_at=1.5, available_at=1e300 % 2e9, max_attempts=3)
    raw = job.encode()

    assert same(decode_stored_job(raw), decode_job(raw, new_id="", now=0.0))
    assert decode_stored_job(raw)._replace(extra={}) == job._replace(extra={})
