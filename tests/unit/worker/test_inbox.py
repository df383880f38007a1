"""The inbox: documents of any program become jobs or dead letters; nothing is left behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.support.logs import lines
from tests.support.waiting import until
from tests.unit.worker.consumers import QUEUE, Bench
from tidework.broker.documents import MARKER, AcceptedDocument, RejectedDocument
from tidework.errors import BrokerFullError
from tidework.intake import BATCH, read_document
from tidework.model.job import JobState

NOW = 1_700_000_000.0


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    found = Bench(lease=timedelta(milliseconds=600))
    found.start()
    yield found
    await found.stop()


def test_a_whole_document_is_kept_as_it_came() -> None:
    raw = b'{ "id": "a", "task": "t", "created_at": 5, "later": [1] }'

    found = read_document(raw, NOW)

    assert isinstance(found, AcceptedDocument)
    assert (found.raw, found.body, found.job.id) == (raw, raw, "a")


def test_a_document_without_an_id_gets_one_that_is_stored() -> None:
    found = read_document(b'{"task": "t", "params": {"a": 1}, "later": [1]}', NOW)

    assert isinstance(found, AcceptedDocument)
    stored = json.loads(found.body)
    assert stored["id"] == found.job.id
    assert stored["created_at"] == NOW
    assert stored["later"] == [1]
    assert stored["params"] == {"a": 1}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"{", "not valid JSON"),
        (b"\xff", "UTF-8"),
        (b"[1]", "object"),
        (b'{"id": "a"}', "task"),
        (b'{"task": "t", "params": 7}', "params"),
        (b'{"task": "t", "v": 0}', "version"),
        (b'{"v": 2}', "task"),
    ],
)
def test_what_is_no_job_is_rejected_with_the_reason(raw: bytes, reason: str) -> None:
    found = read_document(raw, NOW)

    assert isinstance(found, RejectedDocument)
    assert found.raw == raw
    error = found.error
    assert (error.type, error.cause) == ("EnvelopeError", "invalid")
    assert reason in error.message


async def test_a_document_wakes_the_worker_and_runs(bench: Bench) -> None:
    await until(bench.consumer.starved.is_set)

    await bench.broker.put_document(QUEUE, b'{"id": "a", "task": "t"}')

    await bench.wait_sent(1)


async def test_documents_come_in_by_hundreds(bench: Bench) -> None:
    for number in range(350):
        document = f'{{"id": "j{number}", "task": "t"}}'.encode()
        bench.broker._queues[QUEUE].inbox.append(document)
    await bench.broker.put_document(QUEUE, b"broken")

    await bench.wait_sent(1)
    await until(lambda: bench.numbers.rejected["q"] == 1)

    stats = await bench.broker.stats(QUEUE)
    assert stats.states[JobState.DEAD] == 1
    assert stats.states[JobState.READY] + stats.states[JobState.RUNNING] == 350
    assert stats.inbox == 0


async def test_what_a_dead_worker_left_is_taken_in(bench: Bench) -> None:
    bench.broker._queues[QUEUE].intake.append(b'{"id": "left", "task": "t"}')

    await bench.wait_sent(1)

    assert (await bench.job("left")).state is JobState.RUNNING


async def test_documents_are_taken_in_while_all_slots_are_busy(bench: Bench) -> None:
    await bench.enqueue("busy")
    await bench.wait_sent(1)
    bench.start_job(1)

    await bench.broker.put_document(QUEUE, b'{"id": "later", "task": "t"}')

    await until(lambda: bench.broker.get_job(QUEUE, "later"), "it is taken in")


async def test_a_marker_is_removed_and_put_back_for_others(bench: Bench) -> None:
    state = bench.broker._queues[QUEUE]
    await until(bench.consumer.starved.is_set)

    await bench.enqueue("a", "b")
    await bench.wait_sent(1)

    assert list(state.intake) == []
    await until(lambda: list(state.inbox) == [MARKER])


async def test_a_full_redis_leaves_documents_where_they_are(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = bench.broker.intake
    full = True

    async def refuse(*given: object, **named: object) -> tuple[bytes, ...]:
        if full:
            raise BrokerFullError("out of memory")
        return await intake(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(bench.broker, "intake", refuse)
    await bench.broker.put_document(QUEUE, b'{"id": "a", "task": "t"}')
    await until(lambda: bench.numbers.redis_errors["BrokerFullError"] > 0)

    full = False

    await bench.wait_sent(1)


async def test_work_is_found_while_nobody_may_wait_at_the_inbox(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full server refuses BLMOVE, and still lets jobs be given back, reaped and claimed."""
    await until(bench.consumer.starved.is_set)

    async def refuse(*_: object) -> bytes | None:
        raise BrokerFullError("full")

    monkeypatch.setattr(bench.broker, "wait_for_document", refuse)
    # Whoever waits already is let go, without a word.
    bench.tasks[1].cancel()
    await asyncio.gather(bench.tasks[1], return_exceptions=True)
    bench.tasks[1] = asyncio.ensure_future(bench.inbox.watch.run())
    bench.consumer._due_at = None

    await bench.enqueue("a")

    await bench.wait_sent(1)


def test_an_envelope_of_a_later_version_becomes_a_job_that_waits_for_a_newer_worker() -> None:
    raw = b'{"v": 2, "id": "a", "task": "t", "priority": 1, "params": [1], "created_at": 5, "x": 1}'

    found = read_document(raw, NOW)

    assert isinstance(found, AcceptedDocument)
    assert found.body == raw
    assert (found.job.id, found.job.task, found.job.priority) == ("a", "t", 1)


def test_a_later_version_without_an_id_gets_one_and_loses_nothing() -> None:
    found = read_document(b'{"v": 2, "task": "t", "new": {"n": 12345678901234567890}}', NOW)

    assert isinstance(found, AcceptedDocument)
    assert json.loads(found.body) == {
        "v": 2,
        "task": "t",
        "new": {"n": 12345678901234567890},
        "id": found.job.id,
        "created_at": found.job.created_at,
    }


async def test_what_cannot_be_taken_hides_nothing(bench: Bench) -> None:
    """Documents that stay where they are, whatever the reason, and one behind them."""
    stuck = [b'{"id": "stuck%d", "task": "t"}' % number for number in range(250)]
    state = bench.broker._queues[QUEUE]
    take_document = state.take_document

    def leave_the_stuck(raw: bytes) -> bool:
        return raw not in stuck and take_document(raw)

    state.take_document = leave_the_stuck  # type: ignore[method-assign]
    state.intake += [*stuck, b'{"id": "left", "task": "t"}']

    await bench.wait_sent(1)

    assert (await bench.job("left")).state is JobState.RUNNING
    assert state.intake == stuck


async def test_equal_documents_that_were_left_are_taken_in_together(bench: Bench) -> None:
    await until(lambda: bench.inbox._sweep_at > 0)
    bench.broker._queues[QUEUE].intake += [b'{"task": "t"}'] * 50
    sweeps: list[int] = []
    stranded = bench.broker.stranded

    async def count(*given: object, **named: object) -> tuple[bytes, ...]:
        found = await stranded(*given, **named)  # type: ignore[arg-type]
        sweeps.append(len(found))
        return found

    bench.broker.stranded = count  # type: ignore[method-assign]
    bench.consumer.documents_seen = True
    bench.inbox.sweep.nudge()

    await until(lambda: not bench.broker._queues[QUEUE].intake)

    assert sweeps.count(50) == 2, "seen twice, then gone"


async def test_an_unclear_field_is_told_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        document = b'{"id": "j%d", "task": "t", "prio": 1}' % number
        await bench.broker.put_document(QUEUE, document)

    await bench.wait_sent(1)
    await until(lambda: not bench.broker._queues[QUEUE].intake)

    (line,) = lines(caplog, "unknown_field")
    assert "'prio', which has no effect; did you mean 'priority'?" in line["message"]
    assert line["job_id"] == "j0"


async def test_on_a_full_server_the_inbox_is_worked_off(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BLMOVE is refused, and so is whatever adds work, since before the documents came."""
    intake = bench.broker.intake
    ready: list[int] = []

    async def refuse(*_: object) -> bytes | None:
        raise BrokerFullError("full")

    async def let_in(*given: object, full: bool = False, **named: object) -> tuple[bytes, ...]:
        if not full:
            raise BrokerFullError("full")
        found = await intake(*given, full=full, **named)  # type: ignore[arg-type]
        ready.append((await bench.broker.stats(QUEUE)).states[JobState.READY])
        return found

    monkeypatch.setattr(bench.broker, "wait_for_document", refuse)
    monkeypatch.setattr(bench.broker, "intake", let_in)
    bench.tasks[1].cancel()
    await asyncio.gather(bench.tasks[1], return_exceptions=True)
    bench.tasks[1] = asyncio.ensure_future(bench.inbox.watch.run())
    for number in range(350):
        document = b'{"id": "j%d", "task": "t"}' % number
        bench.broker._queues[QUEUE].inbox.append(document)

    for number in range(1, 351):
        await bench.wait_sent(1)
        bench.end(number)

    assert 0 < max(ready) < 2 * BATCH
    assert (await bench.broker.stats(QUEUE)).inbox == 0
