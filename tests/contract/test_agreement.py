"""Where the scripts and the memory model differed once, or both were wrong (the broker machine)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.conftest import LEASE, Kit
from tidework.broker.answers import ReplayAnswer
from tidework.broker.documents import AcceptedDocument
from tidework.broker.redis import redis_broker as redis
from tidework.model.backlog import JobFilter, JobRecord, Presence
from tidework.model.job import Enqueued, Job, JobState, decode_job
from tidework.model.lease import ClaimedJob, QueueLimits, Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.model.unique import OnConflict, Unique
from tidework.testing.memory import broker as memory

BOOM = JobError("ValueError", "boom")
SHORT = timedelta(milliseconds=200)
UID = "11111111-2222-3333-4444-555555555555"


def job(name: str, **fields: object) -> Job:
    return Job(name, "t", {}, **fields)  # type: ignore[arg-type]


async def claim(kit: Kit) -> ClaimedJob:
    (held,) = (await kit.exchange(want=1)).claimed
    return held


async def end(kit: Kit, held: ClaimedJob, outcome: Outcome) -> None:
    await kit.exchange(Settlement(held.id, held.token, outcome))


async def record_of(kit: Kit, name: str) -> JobRecord:
    found = await kit.broker.get_job(kit.queue, name)
    assert found is not None
    return found


async def test_a_replayed_job_tells_no_error_of_before(kit: Kit) -> None:
    await kit.put(job("a"))
    await end(kit, await claim(kit), Outcome.bury(BOOM))
    await kit.broker.replay(kit.queue, ["a"])
    assert (await record_of(kit, "a")).error is None
    await end(kit, await claim(kit), Outcome.complete())
    found = await record_of(kit, "a")
    assert (found.state, found.result, found.error) == (JobState.SUCCEEDED, None, None)


@pytest.mark.parametrize("outcome", [Outcome.retry(BOOM, timedelta(0)), Outcome.loss(BOOM)])
async def test_a_job_cancelled_after_a_failure_tells_no_error(kit: Kit, outcome: Outcome) -> None:
    await kit.put(job("a"))
    await end(kit, await claim(kit), outcome)
    assert (await record_of(kit, "a")).error == BOOM
    await kit.broker.cancel(kit.queue, "a")
    found = await record_of(kit, "a")
    assert (found.state, found.error) == (JobState.CANCELLED, None)


async def test_a_job_that_has_only_waited_has_not_changed(kit: Kit) -> None:
    await kit.put(job("a"), job("b", unique=Unique("k")), job("c", available_at=kit.now + 60))
    for name in "abc":
        assert (await record_of(kit, name)).changed_at is None
    held = await claim(kit)
    assert (await record_of(kit, held.id)).changed_at is not None


async def test_a_worker_that_never_beat_is_forgotten_too(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, keep_presence=SHORT))
    await kit.exchange(sequence=7)
    await kit.let_pass(SHORT * 1.5)
    await kit.broker.upkeep(kit.queue)
    # Else this one would be refused as late: nothing is known of the worker any more.
    assert (await kit.exchange(sequence=6)).claimed == ()


async def test_an_exchange_is_a_sign_of_life(kit: Kit) -> None:
    presence = Presence("w1", datetime(2026, 1, 1, tzinfo=UTC))
    await kit.broker.beat(kit.queue, presence, ttl=timedelta(seconds=30))
    (before,) = await kit.broker.workers(kit.queue)
    await kit.let_pass(timedelta(milliseconds=5))
    await kit.exchange(worker="w1")
    (after,) = await kit.broker.workers(kit.queue)
    assert after.seen_at > before.seen_at


async def test_a_repeated_exchange_tells_the_numbers_of_now(kit: Kit) -> None:
    kit.use(QueueLimits(lease=timedelta(seconds=60)))
    await kit.put(job("a"))
    first = await kit.exchange(want=1, sequence=1)
    await kit.put(job("b"))
    await kit.broker.pause(kit.queue, "")
    again = await kit.exchange(want=1, sequence=1)
    assert (again.claimed, again.refused) == (first.claimed, first.refused)
    assert (first.backlog, first.paused) == (0, False)
    assert (again.backlog, again.paused) == (1, True)


async def test_what_is_pruned_first_when_not_all_can_be(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (memory, redis):
        monkeypatch.setattr(module, "BATCH", 1)
    kit.use(QueueLimits(lease=LEASE, keep_succeeded=SHORT, keep_dead=SHORT))
    for outcome in (Outcome.bury(BOOM), Outcome.cancelled(), Outcome.complete()):
        await kit.put(job(outcome.kind.name))
        await end(kit, await claim(kit), outcome)
    await kit.let_pass(SHORT * 1.5)
    left = ["BURY", "CANCELLED", "COMPLETE"]
    while left:
        left.pop()
        assert (await kit.broker.upkeep(kit.queue)).pruned == 1
        states = [JobState.DEAD, JobState.CANCELLED, JobState.SUCCEEDED]
        pages = [await kit.broker.list_jobs(kit.queue, state) for state in states]
        assert [name for page in pages for name in page.ids] == left


async def test_a_held_job_is_due_after_all_others(kit: Kit) -> None:
    replacing = Unique("k", on_conflict=OnConflict.REPLACE)
    await kit.put(job("a", unique=replacing))
    await claim(kit)
    await kit.put(job("b", unique=replacing))
    moment = datetime.fromtimestamp(kit.now + 3600, UTC)
    listed = [
        (await kit.broker.list_jobs(kit.queue, JobState.SCHEDULED, within)).ids
        for within in (JobFilter(since=moment), JobFilter(until=moment))
    ]
    assert listed == [("b",), ()]


async def test_a_nonce_ran_though_the_record_was_lost(kit: Kit) -> None:
    await kit.broker.put_crontasks(kit.queue, 1, {UID: b"{}"})
    ran = [await kit.broker.run_now(kit.queue, 1, UID, "n", job(f"r{i}")) for i in range(2)]
    assert ran == [True, False]
    admitted = await kit.broker.admit_cron(kit.queue, 1, UID, "f", 0, reset=False)
    assert admitted.last_run_now == "n"


async def test_a_document_that_met_its_key_takes_it_when_it_is_replayed(kit: Kit) -> None:
    raw = b'{"id":"b","created_at":1,"task":"t","unique":{"key":"k","on_conflict":"error"}}'
    await kit.put(job("a", unique=Unique("k")))
    await put_into_intake(kit, raw)
    found = decode_job(raw, new_id="", now=1)
    await kit.broker.intake(kit.queue, [AcceptedDocument(raw, found, raw, named=True)], [])
    assert await kit.broker.replay(kit.queue, ["b"]) == (ReplayAnswer.UNIQUE,)
    await kit.broker.cancel(kit.queue, "a")
    assert await kit.broker.replay(kit.queue, ["b"]) == (ReplayAnswer.REPLAYED,)
    enqueued = await kit.broker.enqueue(kit.queue, [job("c", unique=Unique("k"))])
    assert enqueued == (Enqueued("b", False),)


async def test_a_copy_of_an_intake_leaves_an_equal_document_also_after_a_purge(kit: Kit) -> None:
    raw = b'{"task":"t"}'
    await put_into_intake(kit, raw, raw)
    found = decode_job(raw, new_id="new", now=1)
    document = AcceptedDocument(raw, found, found.encode(), named=False)
    await kit.broker.intake(kit.queue, [document], [])
    await kit.broker.cancel(kit.queue, "new")
    await kit.broker.purge(kit.queue, ["new"])
    await kit.broker.intake(kit.queue, [document], [])
    assert await kit.broker.stranded(kit.queue, 9) == (raw,)


async def put_into_intake(kit: Kit, *raws: bytes) -> None:
    for raw in raws:
        await kit.put_document(raw)
    while len(await kit.broker.stranded(kit.queue, 9)) < len(raws):
        await kit.broker.intake(kit.queue, [], [], more=9)
    assert await kit.broker.stranded(kit.queue, 9) == raws
