"""A reply that is too long comes through as its beginning, however it is cut into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidework.broker.connection.packing import hiredis
from tidework.broker.connection.sieve import Sieve
from tidework.broker.documents import BEGINNING_BYTES, MAX_DOCUMENT_BYTES, Beginning

LARGE = b"0123456789" * (MAX_DOCUMENT_BYTES // 10 + 1)
JUST = b"x" * MAX_DOCUMENT_BYTES
BEHIND = b"*2\r\n:1\r\n$3\r\nabc\r\n"


def bulk(raw: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(raw), raw)


FIRST = {
    "large": (bulk(LARGE), LARGE[:BEGINNING_BYTES]),
    "just not": (bulk(JUST), JUST),
    "short": (bulk(b"!"), b"!"),
    "empty": (bulk(b""), b""),
    "nothing": (b"*-1\r\n", None),
    "null": (b"$-1\r\n", None),
    "many": (b"*1\r\n" + bulk(LARGE), [LARGE]),
}


@pytest.mark.parametrize("kind", FIRST)
@given(cuts=st.lists(st.integers(1, 40) | st.integers(1, 2 * len(LARGE)), max_size=12))
@settings(max_examples=20)
def test_the_first_reply_is_bounded_and_what_follows_is_untouched(
    kind: str, cuts: list[int]
) -> None:
    sent, first = FIRST[kind]
    reader, sieve, found = hiredis.Reader(), Sieve(), []
    rest = sent + BEHIND
    for size in [*cuts, len(rest)]:
        reader.feed(sieve.pass_on(rest[:size]))
        rest = rest[size:]
        while (reply := reader.gets()) is not False:
            found.append(reply)
    assert found == [first, [1, b"abc"]]
    named = sieve.named(found[0])
    assert named == first
    assert isinstance(named, Beginning) is (kind == "large")
    assert sieve.length == (len(LARGE) if kind == "large" else 0)


def test_an_error_comes_through_as_it_is() -> None:
    error = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
    assert Sieve().pass_on(error) == error
