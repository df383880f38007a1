"""An envelope comes back from `jobs` as it went in, byte for byte."""

from __future__ import annotations

import pytest

from tidework.broker.redis.stored import split_body, stored_body
from tidework.model.job import Job

OURS = Job("a", "send", {"to": "bob"}, created_at=1.5).encode()


def test_our_own_envelope_is_stored_without_what_its_place_says() -> None:
    stored = stored_body("send", "a", OURS)

    assert stored == b'send\0,"task":"send","created_at":1.5,"params":{"to":"bob"}}'
    assert split_body(b"a", stored) == ("send", OURS)


@pytest.mark.parametrize(
    "envelope",
    [
        b'{"task":"send"}',
        b'{"id":"a","v":1,"task":"send"}',
        b'{ "v":1,"id":"a","task":"send"}',
        b'{"v":1,"id":"a"}',
        b'{"v":1,"id":"ab","task":"send"}',
        b'{"v":2,"id":"a","task":"send"}',
    ],
)
def test_whatever_others_wrote_is_stored_as_it_is(envelope: bytes) -> None:
    stored = stored_body("send", "a", envelope)

    assert stored == b"send\0" + envelope
    assert split_body(b"a", stored) == ("send", envelope)


def test_a_document_that_never_validated_keeps_its_bytes() -> None:
    assert split_body(b"a", b'\0,"x"') == ("", b',"x"')
