"""Whatever bytes lie in an inbox: each document becomes one job or one dead letter, unchanged."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.fixtures import valkey
from tests.support.inbox_documents import (
    documents,
    good_documents,
    params_of,
    read_strictly,
)
from tests.support.servers import ValkeyServer
from tests.support.waiting import until
from tests.unit.worker.children import PoolBench
from tidework.app import Tidework
from tidework.broker.broker import Broker
from tidework.broker.documents import AcceptedDocument, hand_out
from tidework.broker.redis.redis_broker import connect
from tidework.clock import ManualClock
from tidework.intake import read_document
from tidework.metrics import WorkerNumbers
from tidework.model.backlog import JobRecord
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.model.lease import LEASE, ClaimedJob
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.testing.memory.broker import MemoryBroker
from tidework.worker.admission import Admission, admit
from tidework.worker.child.execution import Execution
from tidework.worker.frames import JobFrame
from tidework.worker.queue.consumer import Consumer
from tidework.worker.queue.facts import WorkerFacts
from tidework.worker.queue.inbox import Inbox
from tidework.worker.queue.job_log import JobLog

__all__ = ["valkey"]

NOW = 1_700_000_100.0
ENDLESS = 1e12
"""Nobody waits so long for a worker that knows a task."""

app = Tidework("fuzzed", queue="q")


@app.task(max_attempts=1)
def t(**params: Any) -> Any:
    return params


SPECS = {task.spec.name: task.spec for task in app.tasks.values()}
EXECUTION = Execution(
    app.tasks, (QueueName("n", "q"),), ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
)


@pytest.mark.thorough
@given(documents())
@settings(max_examples=400)
def test_any_document_is_a_job_that_reads_alike_everywhere_or_is_refused(raw: bytes) -> None:
    found = read_document(raw, NOW)

    assert found.raw == raw
    if isinstance(found, AcceptedDocument):
        read_strictly(raw)
        assert params_of(found.body) == params_of(raw)
        envelope = json.loads(found.body)
        assert envelope["id"] == found.job.id
        assert isinstance(envelope["created_at"], (int, float))
    else:
        error = decoded(found.error)
        assert (error.type, error.cause) == ("EnvelopeError", "invalid")
        assert 0 < len(error.message) < 1000


REFUSED = {
    "a key twice": (b'{"task":"t","task":"u"}', "the key 'task' comes twice"),
    "within params": (b'{"task":"t","params":{"x":{"a":1,"a":2}}}', "the key 'a' comes twice"),
    "in disguise": (rb'{"task":"t","params":{"a":1,"\u0061":2}}', "the key 'a' comes twice"),
    "no double": (b'{"task":"t","params":{"x":1e400}}', "'1e400'"),
    "NaN": (b'{"task":"t","params":{"x":NaN}}', "NaN"),
    "half a pair": (rb'{"task":"t","params":{"x":"\ud800"}}', "half of a surrogate pair"),
    "half in UTF-8": (b'{"task":"t","x":"\xed\xa0\x80"}', "not valid UTF-8 at byte 17"),
    "a mark": (b'\xef\xbb\xbf{"task":"t"}', "BOM"),
    "UTF-16": ('{"task":"t"}'.encode("utf-16-le"), "not valid JSON"),
    "300 deep": (b'{"task":"t","x":' + b"[" * 300 + b"]" * 300 + b"}", "deep"),
    "400 digits": (b'{"task":"t","created_at":' + b"9" * 400 + b"}", "created_at: 999"),
    "a megabyte": (b'{"task":"t","timeout":"' + b"9" * 1_000_000 + b'"}', "is not a number"),
    "a control character": (rb'{"task":"t","id":"a\u0000b"}', "id: "),
}


@pytest.mark.parametrize(("raw", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_readers_would_understand_differently_is_refused(raw: bytes, reason: str) -> None:
    found = read_document(raw, NOW)

    assert not isinstance(found, AcceptedDocument)
    assert reason in decoded(found.error).message


def test_an_id_that_is_null_is_none() -> None:
    found = read_document(b'{"task":"t","id":null,"created_at":null}', NOW)

    assert isinstance(found, AcceptedDocument)
    assert json.loads(found.body) | {"v": 1} == {
        "v": 1,
        "id": found.job.id,
        "task": "t",
        "created_at": NOW,
        "params": {},
    }


def test_integers_of_any_size_come_back_exactly() -> None:
    numbers = [2**63 - 1, 2**63, -(2**64), 2**53 + 1, 10**300]
    raw = json.dumps({"task": "t", "params": {"n": numbers}}).encode()

    found = read_document(raw, NOW)

    assert isinstance(found, AcceptedDocument)
    assert run(found) == {"n": numbers}


@given(good_documents(), st.booleans())
def test_a_good_document_is_always_a_job(document: dict[str, Any], ascii_only: bool) -> None:
    raw = json.dumps(document, ensure_ascii=ascii_only).encode()

    found = read_document(raw, NOW)

    assert isinstance(found, AcceptedDocument)
    # A field that says its default may be left out.
    stored = {"v": 1, "priority": 5, "group": None} | json.loads(found.body)
    assert {name: stored[name] for name in document} == document
    assert run(found) == document["params"]


@pytest.mark.thorough
@given(documents())
@settings(max_examples=300)
def test_whoever_reads_a_job_later_can_read_it_or_says_why_not(raw: bytes) -> None:
    found = read_document(raw, NOW)
    if isinstance(found, AcceptedDocument):
        run(found)


def run(found: AcceptedDocument) -> Any:
    """What the task returned, None if the job did not come so far; nothing is raised."""
    claimed = ClaimedJob(found.job.id, "w:1", 1, 1, 0, 0, found.body)
    admitted = admit(claimed, SPECS, hard_timeout=60, unknown_grace=ENDLESS)
    if not isinstance(admitted, Admission):
        return told(admitted)
    frame = JobFrame(1, False, 0, 1, admitted.max_attempts, admitted.timeout, found.body)
    outcome = EXECUTION.run(JobFrame.decode(frame.encode()[4:]))
    if outcome.kind is OutcomeKind.COMPLETE:
        return json.loads(outcome.detail)
    return told(outcome)


def told(outcome: Outcome) -> None:
    assert outcome.kind in (OutcomeKind.BURY, OutcomeKind.RELEASE)
    if outcome.kind is OutcomeKind.BURY:
        assert JobError.decode(outcome.detail).message


def decoded(error: JobError | bytes) -> JobError:
    return error if isinstance(error, JobError) else JobError.decode(error)


class Taker(PoolBench):
    """A worker's inbox and consumer of one queue. It knows no task: it is always starved."""

    def __init__(self, broker: Broker, queue: QueueName) -> None:
        super().__init__(1)
        journal = JobLog("q", WorkerNumbers("0", 1), self.clock)
        facts = WorkerFacts("w.1", {}, 60.0, ENDLESS, LEASE)
        self.pool.sources.clear()
        self.pool.claims._turns.clear()
        consumer = Consumer(queue, 0, broker, self.pool, facts, journal, self.clock)
        self.pool.add_source(consumer)
        inbox = Inbox(consumer, broker, journal, self.clock, LEASE)
        self.loops = [consumer.loop, inbox.watch, inbox.sweep]


@asynccontextmanager
async def taking(broker: Broker, queue: QueueName) -> AsyncIterator[None]:
    """Documents are taken in meanwhile; fails if the worker does."""
    taker = Taker(broker, queue)
    taker.start()
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(loop.run()) for loop in taker.loops]
            yield
            for loop, task in zip(taker.loops, tasks, strict=True):
                # Both: redis-py swallows a cancellation that comes with a reply.
                loop.stop()
                task.cancel()
    finally:
        taker.close()


async def wait_taken(broker: Broker, queue: QueueName) -> None:
    """Until nothing lies in the inbox, or in intake."""

    async def is_empty() -> bool:
        return not (await broker.stats(queue)).inbox

    await until(is_empty, f"all of {queue} is taken in")


async def expect_all(broker: Broker, queue: QueueName, raws: Sequence[bytes]) -> None:
    """Every document has become what it should, and there is nothing else."""
    found = [read_document(hand_out(raw), NOW) for raw in raws]
    jobs = [each.raw for each in found if isinstance(each, AcceptedDocument)]
    letters = [each.raw for each in found if not isinstance(each, AcceptedDocument)]
    records = await all_records(broker, queue)
    dead = [record for record in records if record.state is JobState.DEAD]
    living = [record for record in records if record.state is not JobState.DEAD]
    assert Counter(record.body for record in dead) == Counter(letters)
    assert all(record.error is not None and record.error.message for record in dead)
    assert Counter(repr(params_of(record.body)) for record in living) == Counter(
        repr(params_of(raw)) for raw in jobs
    )
    assert len(records) == len(raws)


async def all_records(broker: Broker, queue: QueueName) -> list[JobRecord]:
    found = []
    for state in JobState:
        page = await broker.list_jobs(queue, state, limit=1000)
        assert page.cursor is None
        found += [await broker.get_job(queue, job_id) for job_id in page.ids]
    return [record for record in found if record is not None]


def distinct(raws: Sequence[bytes]) -> list[bytes]:
    """Without those that would say the id or the unique key of another one again."""
    kept: list[bytes] = []
    seen: set[tuple[str, str]] = set()
    for raw in raws:
        found = read_document(hand_out(raw), NOW)
        if isinstance(found, AcceptedDocument):
            document = json.loads(found.body)
            says = {("id", found.job.id), ("unique", json.dumps(document.get("unique")))}
        else:
            says = {("id", found.named)}
        says -= {("id", ""), ("unique", "null")}
        if says & seen:
            continue
        seen |= says
        kept.append(raw)
    return kept


@given(st.lists(documents(), min_size=1, max_size=30).map(distinct))
@settings(max_examples=30)
def test_a_worker_takes_in_whatever_lies_there(raws: list[bytes]) -> None:
    async def scenario() -> None:
        broker, queue = MemoryBroker(), QueueName("n", "q")
        async with taking(broker, queue):
            for raw in raws:
                await broker.put_document(queue, raw)
            await wait_taken(broker, queue)
        await expect_all(broker, queue, raws)

    asyncio.run(scenario())


def test_the_same_on_a_real_server(valkey: ValkeyServer) -> None:
    @given(st.lists(documents(), min_size=20, max_size=40).map(distinct))
    @settings(max_examples=4, phases=[Phase.generate])
    def take_in(raws: list[bytes]) -> None:
        asyncio.run(scenario(raws))

    async def scenario(raws: list[bytes]) -> None:
        broker, queue = connect(valkey.url), QueueName(f"fuzz-{secrets.token_hex(6)}", "q")
        with valkey.client() as foreign:
            foreign.lpush(f"tw1:{{{queue}}}:inbox", *raws)
        async with taking(broker, queue):
            await wait_taken(broker, queue)
        await expect_all(broker, queue, raws)
        await broker.close()

    take_in()
