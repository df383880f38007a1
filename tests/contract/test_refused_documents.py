"""Documents that are no jobs, that come twice, or that are too large: nothing is left behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.conftest import Kit
from tidework.broker.answers import ReplayAnswer
from tidework.broker.documents import (
    MAX_DOCUMENT_BYTES,
    MOST_BYTES,
    AcceptedDocument,
    Beginning,
    RejectedDocument,
    length_of,
)
from tidework.intake import read_document
from tidework.model.backlog import JobRecord
from tidework.model.job import Job, JobState

TIMEOUT = timedelta(seconds=5)
REFUSED = b'{"id":"order-9","task":7}'
LARGE = b'{"id":"order-9","task":"t","params":{"a":"' + b"x" * MAX_DOCUMENT_BYTES + b'"}}'


async def put_into_intake(kit: Kit, *raws: bytes) -> tuple[bytes, ...]:
    """They lie in intake; as they were handed out."""
    for raw in raws:
        await kit.put_document(raw)
    moved: list[bytes] = []
    while len(moved) < len(raws):
        moved += await kit.broker.intake(kit.queue, [], [], more=len(raws))
    return tuple(moved)


async def take_in(kit: Kit, *raws: bytes) -> None:
    """As a worker does."""
    found = [read_document(raw, 1.0) for raw in raws]
    await ask(kit, *found)


async def ask(kit: Kit, *found: AcceptedDocument | RejectedDocument) -> None:
    accepted = [each for each in found if isinstance(each, AcceptedDocument)]
    rejected = [each for each in found if isinstance(each, RejectedDocument)]
    await kit.broker.intake(kit.queue, accepted, rejected)


async def dead(kit: Kit) -> dict[str, JobRecord]:
    """The dead letters by id."""
    ids = (await kit.broker.list_jobs(kit.queue, JobState.DEAD)).ids
    records = [await kit.broker.get_job(kit.queue, found) for found in ids]
    return {record.id: record for record in records if record is not None}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"id":"x","task":"work","params":{"n":1}}',
        b'{"v":2,"id":"x","task":"work","params":[1]}',
        b'{"task_id":"x","task_type":"work","payload":[]}',
        b'{"id":"x","task":"work","created_at":1,"params":[]}',
    ],
)
async def test_a_document_that_names_its_id_may_be_sent_again(kit: Kit, raw: bytes) -> None:
    """Also where something had to be added to it: its time, or our names for its fields."""
    await put_into_intake(kit, raw, raw)
    for _ in range(2):
        await take_in(kit, raw)
    await put_into_intake(kit, raw)
    await take_in(kit, raw)

    stats = await kit.broker.stats(kit.queue)
    assert (stats.inbox, stats.states[JobState.READY], stats.counters["known"]) == (0, 1, 2)
    assert (await kit.broker.gather(kit.queue, horizon=TIMEOUT)).backlog == 1
    assert await kit.broker.get_job(kit.queue, "x") is not None


async def test_a_refused_document_keeps_its_own_id_and_may_be_sent_again(kit: Kit) -> None:
    await put_into_intake(kit, REFUSED, REFUSED)
    await take_in(kit, REFUSED)
    await take_in(kit, REFUSED)

    letters = await dead(kit)
    assert list(letters) == ["order-9"]
    assert letters["order-9"].body == REFUSED
    stats = await kit.broker.stats(kit.queue)
    assert (stats.inbox, stats.counters["rejected"], stats.counters["known"]) == (0, 1, 1)


async def test_a_refused_document_that_names_another_job_leaves_that_alone(kit: Kit) -> None:
    await kit.put(Job("order-9", "t", {}))
    await put_into_intake(kit, REFUSED)
    refused = read_document(REFUSED, 1.0)
    assert isinstance(refused, RejectedDocument)
    await ask(kit, refused)

    assert list(await dead(kit)) == [refused.id]
    record = await kit.broker.get_job(kit.queue, "order-9")
    assert record is not None
    assert record.state is JobState.READY


@pytest.mark.parametrize("raw", [REFUSED, b"nameless"])
async def test_a_late_copy_of_a_refusal_leaves_what_was_replayed_alone(
    kit: Kit, raw: bytes
) -> None:
    """The letter has gone back to the inbox, and a newer worker may take it for a job."""
    await put_into_intake(kit, raw)
    refused = read_document(raw, 1.0)
    await ask(kit, refused)
    (letter,) = await dead(kit)
    assert await kit.broker.replay(kit.queue, [letter]) == (ReplayAnswer.REPLAYED,)
    assert await kit.broker.wait_for_document(kit.queue, TIMEOUT) == raw

    await ask(kit, refused)

    assert await kit.broker.stranded(kit.queue, 9) == (raw,)
    await take_in(kit, raw)
    (again,) = await dead(kit)
    assert (again == letter) is (raw == REFUSED)


async def test_of_a_large_document_the_beginning_is_handed_out(kit: Kit) -> None:
    await kit.put_document(LARGE)
    waited = await kit.broker.wait_for_document(kit.queue, TIMEOUT)
    (lying,) = await kit.broker.stranded(kit.queue, 9)
    (moved,) = await put_into_intake(kit, LARGE)

    for found in (waited, lying, moved):
        assert isinstance(found, Beginning)
        assert (found.length, bytes(found)) == (len(LARGE), LARGE[: len(found)])
        assert 0 < len(found) < 10_000


async def test_a_large_document_is_a_dead_letter_of_which_the_beginning_is_kept(kit: Kit) -> None:
    other = LARGE.replace(b"order-9", b"order-8")
    found = await put_into_intake(kit, other, LARGE, LARGE)
    await take_in(kit, found[1])
    await take_in(kit, found[1])

    letters = await dead(kit)
    assert list(letters) == ["order-9"], "a copy is no second one"
    assert letters["order-9"].body == bytes(found[1])
    error = letters["order-9"].error
    assert error is not None
    assert f"{len(LARGE)} bytes" in error.message
    (left,) = await kit.broker.stranded(kit.queue, 9)
    assert left == found[0], "the other one is another document"
    assert await kit.broker.replay(kit.queue, ["order-9"]) == (ReplayAnswer.CUT,)
    assert list(await dead(kit)) == ["order-9"]


async def test_documents_come_in_bounded_bytes(kit: Kit) -> None:
    size = MAX_DOCUMENT_BYTES - 50
    many = [b'{"id":"d%d","task":"t","x":"%b"}' % (i, b"x" * size) for i in range(7)]
    for raw in many:
        await kit.put_document(raw)
    first = await kit.broker.intake(kit.queue, [], [], more=100)
    assert 0 < sum(map(length_of, first)) < MOST_BYTES + 2 * size
    assert await kit.broker.stranded(kit.queue, 100) == first
    assert await kit.broker.stranded(kit.queue, 100, 1) == first[1:]
    second = await kit.broker.intake(kit.queue, [], [], more=100)
    assert [*first, *second] == many
    assert await kit.broker.stranded(kit.queue, 100, len(first)) == second


async def test_where_there_is_no_room_documents_come_as_fast_as_they_are_worked_off(
    kit: Kit,
) -> None:
    for number in range(9):
        await kit.put_document(b'{"id":"d%d","task":"t"}' % number)
    taken = 0
    while moved := await kit.broker.intake(kit.queue, [], [], more=3, full=True):
        taken += len(moved)
        found = [read_document(raw, 1.0) for raw in moved]
        accepted = [each for each in found if isinstance(each, AcceptedDocument)]
        await kit.broker.intake(kit.queue, accepted, [], full=True)
    assert taken == 3
    assert len((await kit.exchange(want=1)).claimed) == 1
    assert len(await kit.broker.intake(kit.queue, [], [], more=3, full=True)) == 3
