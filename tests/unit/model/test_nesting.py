"""Depth is bounded before anything is made of a document."""

from __future__ import annotations

import tracemalloc

import pytest

from tidework.errors import EnvelopeError
from tidework.model.documents.strict_json import MAX_DEPTH, decode_json


@pytest.mark.parametrize(
    "text",
    [
        "[" * MAX_DEPTH + "]" * MAX_DEPTH,
        '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH,
        "[" + ",".join(["[[]]"] * 500) + "]",
        '["' + "[{" * 500 + '"]',
        '["\\\\","' + "[" * 500 + '\\"' + "[" * 500 + '"]',
    ],
)
def test_what_is_not_too_deep_is_read(text: str) -> None:
    decode_json(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        '{"a":[' * 51 + "]}" * 51,
        '["\\\\"' + ",[" * 200 + "]" * 201,
        "[[]]," * 200 + "[" * 101,
        "[" * 10_000,
    ],
)
def test_what_is_too_deep_is_told(text: str) -> None:
    with pytest.raises(EnvelopeError, match="nested more than 100 deep"):
        decode_json(text.encode())


def test_nothing_is_made_of_it() -> None:
    raw = b"[" + b"[[[]]]," * 140_000 + b"[" * 200
    tracemalloc.start()
    try:
        with pytest.raises(EnvelopeError, match="nested more"):
            decode_json(raw)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * len(raw)
