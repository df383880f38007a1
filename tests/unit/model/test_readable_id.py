"""A document that is refused keeps its own id, wherever that can be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidework.model.documents.readable_id import readable_id


@pytest.mark.parametrize(
    "raw",
    [
        b'{"id":"order-9"}',
        b'{"task":7,"id":"order-9"}',
        b' {\n "task" : null , "id" :\t"order-9" , ',
        b'{"params":{"id":"inner","a":[{"id":"x"}]},"id":"order-9"}',
        b'{"params":{"n":NaN},"id":"order-9"}',
        b'{"id":"order-9","params":{"a":' + b"[" * 10_000,
        b'{"id":"order-9","id":"second"}',
        b'{"note":"say \\"hi\\" [ { \xff","id":"order-9"}',
        b'\xef\xbb\xbf{"id":"order-9"}',
        b'{"id":"order-9","task":"t","params":{"a":"' + b"x" * 5000,
        b'{"task_id":"order-9","task_type":7}',
        b'{"task_id":"other","id":"order-9"}',
        b'{"id":null,"task_id":"order-9"}',
        b'{"id":"order-9"} and more',
    ],
)
def test_an_id_is_read(raw: bytes) -> None:
    assert readable_id(raw) == "order-9"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[",
        b'["id","order-9"]',
        b'"id"',
        b"{}",
        b'{"id":9}',
        b'{"id":"a b"}',
        b'{"id":["order-9"]}',
        b'{"params":{"id":"order-9"}}',
        b'{"params":{"a":[1,"id":"order-9"}',
        b'{"a":"\\"id\\":\\"order-9\\""}',
        b'{"task":"t" "id":"order-9"}',
        b'{"id":"order-9',
        b"{" + b'"a":[' * 10_000 + b'"id":"order-9"',
        '{"id":"order-9"}'.encode("utf-16-le"),
    ],
)
def test_what_is_none_of_its_own_is_not(raw: bytes) -> None:
    assert readable_id(raw) == ""


@given(st.binary(max_size=200) | st.text('{}[]":,\\ id-9', max_size=60).map(str.encode))
def test_no_bytes_are_too_odd(raw: bytes) -> None:
    readable_id(raw)
    readable_id(b'{"id":' + raw)


@pytest.mark.parametrize("raw", [b'{"a":' + b'"\\' * 500_000, b"{" + b'"a":[],' * 140_000])
def test_a_megabyte_of_anything_is_read_once(raw: bytes) -> None:
    """Quadratic, these would outlast every bound of a test."""
    assert readable_id(raw) == ""
