"""Fields that are called otherwise: the tutorials' envelope, PHP's empty arrays, typos."""

from __future__ import annotations

import json

import pytest

from tidework.broker.documents import AcceptedDocument, RejectedDocument
from tidework.errors import EnvelopeError
from tidework.intake import read_document
from tidework.model.job import decode_document, decode_job, decode_stored_job


def decode(raw: bytes) -> dict[str, object]:
    return decode_job(raw, new_id="new", now=5.0)._asdict()


def test_the_tutorials_envelope_is_ours_under_other_names() -> None:
    theirs = (
        b'{"task_id":"task_65a1b2c3.12345678","task_type":"send_email","payload":{"to":"bob"},'
        b'"priority":1,"attempts":0,"max_attempt":3,"created_at":1700000000,"x-shop":7}'
    )
    ours = (
        b'{"id":"task_65a1b2c3.12345678","task":"send_email","params":{"to":"bob"},'
        b'"priority":1,"attempts":0,"max_attempts":3,"created_at":1700000000,"x-shop":7}'
    )
    assert decode(theirs) == decode(ours)
    found = decode_document(theirs, new_id="new", now=5.0)
    assert (found.named, found.whole, found.unclear) == (True, False, {})


def test_it_is_stored_under_our_names() -> None:
    """Children, older workers and exec tasks read what is stored."""
    raw = b'{"task_id":"a","task_type":"t","payload":[],"attempts":0,"created_at":1}'
    found = read_document(raw, 5.0)
    assert isinstance(found, AcceptedDocument)
    assert json.loads(found.body) == {
        "v": 1, "id": "a", "task": "t", "created_at": 1, "params": {}, "attempts": 0,
    }  # fmt: skip
    assert decode_stored_job(found.body).params == {}


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b'{"task_type":"t","id":"a","task_id":"b"}', "id: 'id' says 'a', and 'task_id'"),
        (b'{"task_type":"t","params":{},"payload":{"a":1}}', "params: 'params' says an object"),
        (b'{"task_type":"t","payload":[1]}', "params: has to be a JSON object"),
        (b'{"task_type":7}', "task: has to be the task's name"),
        (b'{"task_type":"t","max_attempt":"3"}', "max_attempts: "),
    ],
)
def test_what_contradicts_itself_is_refused(raw: bytes, told: str) -> None:
    with pytest.raises(EnvelopeError) as caught:
        decode(raw)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize("field", ["params", "trace"])
def test_an_empty_list_of_php_is_an_empty_object(field: str) -> None:
    raw = b'{"id":"a","created_at":1,"task":"t","%b":[]}' % field.encode()
    assert decode(raw) == decode(b'{"id":"a","created_at":1,"task":"t"}')
    assert not decode_document(raw, new_id="", now=5.0).whole
    assert decode_stored_job(raw) == decode_stored_job(b'{"id":"a","created_at":1,"task":"t"}')


@pytest.mark.parametrize(
    ("field", "meant"),
    [
        ("max_attempt", "max_attempts"),
        ("maxAttempts", "max_attempts"),
        ("attempts", "max_attempts"),
        ("prio", "priority"),
        ("Priority", "priority"),
        ("payload", "params"),
        ("param", "params"),
        ("task_id", "id"),
        ("task_type", "task"),
        ("createdAt", "created_at"),
        ("time_out", "timeout"),
        ("delay", "available_at"),
    ],
)
def test_a_field_that_looks_like_one_of_ours_is_kept_and_told(field: str, meant: str) -> None:
    raw = b'{"id":"a","task":"t","%b":1}' % field.encode()
    told: list[tuple[str, str, str]] = []
    found = read_document(raw, 5.0, lambda *each: told.append(each))
    assert isinstance(found, AcceptedDocument)
    assert told == [("a", field, meant)]
    assert json.loads(found.body)[field] == 1


@pytest.mark.parametrize(
    "field", ["x-prio", "group", "params_ref", "color", "", "é" * 9, "z" * 999]
)
def test_other_fields_are_their_writers_business(field: str) -> None:
    raw = json.dumps({"task": "t", field: 1}).encode()
    assert decode_document(raw, new_id="new", now=5.0).unclear == {}


def test_of_a_refused_document_the_reason_tells_them() -> None:
    found = read_document(b'{"id":"a","type":"t","max_attempt":3,"params":[1]}', 5.0)
    assert isinstance(found, RejectedDocument)
    assert "task: has to be the task's name" in found.error.message
    assert "'max_attempt' looks like 'max_attempts'" in found.error.message
