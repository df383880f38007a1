"""The inbox: JSON documents of any program become jobs or dead letters, exactly once."""

from __future__ import annotations

from datetime import timedelta

from tests.contract.conftest import Kit
from tidework.broker.documents import MARKER, AcceptedDocument, RejectedDocument
from tidework.model.job import JobState, decode_job
from tidework.model.outcome import JobError

RAW = b'{"task":"send","params":{"big":12345678901234567890},"id":"php-1","later":"field"}'
TIMEOUT = timedelta(seconds=5)


def accept(raw: bytes) -> AcceptedDocument:
    return AcceptedDocument(raw, decode_job(raw, new_id="new", now=1.0), raw, named=True)


async def test_a_document_is_taken_validated_and_inserted(kit: Kit) -> None:
    await kit.put_document(RAW)
    assert (await kit.broker.stats(kit.queue)).inbox == 1
    raw = await kit.broker.wait_for_document(kit.queue, TIMEOUT)
    assert raw == RAW
    assert await kit.broker.stranded(kit.queue, 10) == (RAW,)
    assert await kit.broker.intake(kit.queue, [accept(raw)], []) == ()
    stats = await kit.broker.stats(kit.queue)
    assert (stats.inbox, stats.states[JobState.READY]) == (0, 1)
    claimed = (await kit.exchange(want=1)).claimed
    assert claimed[0].id == "php-1"
    assert claimed[0].body == RAW


async def test_the_second_remover_of_a_document_changes_nothing(kit: Kit) -> None:
    await kit.put_document(RAW)
    await kit.broker.wait_for_document(kit.queue, TIMEOUT)
    made_up = decode_job(b'{"task":"t"}', new_id="other", now=1.0)
    other = AcceptedDocument(RAW, made_up, RAW, named=False)
    await kit.broker.intake(kit.queue, [accept(RAW)], [])
    await kit.broker.intake(kit.queue, [other], [RejectedDocument(RAW, "x", JobError("E", "bad"))])
    assert await kit.broker.get_job(kit.queue, "other") is None
    assert await kit.broker.get_job(kit.queue, "x") is None
    assert (await kit.broker.stats(kit.queue)).counters["enqueued"] == 1


async def test_equal_documents_without_an_id_are_two_jobs(kit: Kit) -> None:
    raw = b'{"task":"send"}'
    await kit.put_document(raw)
    await kit.put_document(raw)
    for new_id in ("one", "two"):
        assert await kit.broker.wait_for_document(kit.queue, TIMEOUT) == raw
        job = decode_job(raw, new_id=new_id, now=1.0)
        found = AcceptedDocument(raw, job, raw, named=False)
        await kit.broker.intake(kit.queue, [found], [])
    assert (await kit.broker.stats(kit.queue)).states[JobState.READY] == 2


async def test_a_refused_document_is_a_dead_letter_with_its_bytes(kit: Kit) -> None:
    raw = b"\xff\x00 not json"
    await kit.put_document(raw)
    await kit.broker.wait_for_document(kit.queue, TIMEOUT)
    error = JobError("EnvelopeError", "not valid UTF-8 at byte 0", cause="invalid")
    await kit.broker.intake(kit.queue, [], [RejectedDocument(raw, "bad-1", error)])
    record = await kit.broker.get_job(kit.queue, "bad-1")
    assert record is not None
    assert (record.state, record.body, record.error) == (JobState.DEAD, raw, error)
    assert (await kit.broker.stats(kit.queue)).counters["rejected"] == 1


async def test_further_documents_come_with_the_first(kit: Kit) -> None:
    documents = [b'{"task":"send","id":"d%d"}' % i for i in range(5)]
    for raw in documents:
        await kit.put_document(raw)
    first = await kit.broker.wait_for_document(kit.queue, TIMEOUT)
    assert first == documents[0]
    more = await kit.broker.intake(kit.queue, [accept(first)], [], more=3)
    assert list(more) == documents[1:4]
    last = await kit.broker.intake(kit.queue, [accept(raw) for raw in more], [], more=9)
    assert list(last) == documents[4:]
    assert await kit.broker.stranded(kit.queue, 10) == (documents[4],)


async def test_a_marker_is_no_document(kit: Kit) -> None:
    await kit.put_document(MARKER)
    assert (await kit.broker.stats(kit.queue)).inbox == 0
    assert await kit.broker.wait_for_document(kit.queue, TIMEOUT) == MARKER
    assert (await kit.broker.stats(kit.queue)).inbox == 0
    assert await kit.broker.stranded(kit.queue, 10) == ()


async def test_markers_do_not_come_with_documents(kit: Kit) -> None:
    await kit.put_document(MARKER)
    await kit.put_document(b"one")
    await kit.put_document(b"two")
    assert await kit.broker.intake(kit.queue, [], [], more=9) == (b"one", b"two")
    assert await kit.broker.stranded(kit.queue, 9) == (b"one", b"two")
    assert await kit.broker.intake(kit.queue, [], [], more=9) == ()
