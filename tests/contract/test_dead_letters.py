"""Dead letters: found by task, error and time, replayed, purged, and bounded with an alarm."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.conftest import LEASE, Kit
from tidework.broker.answers import PurgeAnswer, ReplayAnswer
from tidework.broker.bulk import purge_all, replay_all
from tidework.broker.documents import RejectedDocument
from tidework.errors import ConfigurationError
from tidework.model.backlog import EVERY_JOB, JobFilter
from tidework.model.job import Job, JobState
from tidework.model.lease import QueueLimits, Settlement
from tidework.model.outcome import JobError, Outcome

TYPED = JobError("TypeError", "expected 3 values, got 4")
VALUED = JobError("ValueError", "not 'x'")


async def bury(kit: Kit, task: str, error: JobError, *names: str) -> None:
    """Jobs of ``task`` that end dead, one after the other."""
    for name in names:
        await kit.put(Job(name, task, {}))
        (held,) = (await kit.exchange(want=1)).claimed
        await kit.exchange(Settlement(held.id, held.token, Outcome.bury(error)))
        await kit.let_pass(timedelta(milliseconds=2))


async def ids(kit: Kit, within: JobFilter, state: JobState = JobState.DEAD) -> tuple[str, ...]:
    return (await kit.broker.list_jobs(kit.queue, state, within)).ids


async def state_of(kit: Kit, name: str) -> JobState | None:
    record = await kit.broker.get_job(kit.queue, name)
    return None if record is None else record.state


async def test_they_are_listed_by_task_and_by_error_newest_first(kit: Kit) -> None:
    await bury(kit, "send", TYPED, "a", "b")
    await bury(kit, "fetch", VALUED, "c")
    await bury(kit, "send", VALUED, "d")
    assert await ids(kit, JobFilter(task="send")) == ("d", "b", "a")
    assert await ids(kit, JobFilter(task="sen")) == ()
    assert await ids(kit, JobFilter(error=VALUED.fingerprint)) == ("d", "c")
    assert await ids(kit, EVERY_JOB) == ("d", "c", "b", "a")


async def test_succeeded_and_cancelled_jobs_are_listed_by_task_too(kit: Kit) -> None:
    await kit.put(Job("a", "send", {}), Job("b", "fetch", {}), Job("c", "send", {}))
    await kit.broker.cancel(kit.queue, "c")
    for held in (await kit.exchange(want=2)).claimed:
        await kit.exchange(Settlement(held.id, held.token, Outcome.complete()))
    assert await ids(kit, JobFilter(task="send"), JobState.SUCCEEDED) == ("a",)
    assert await ids(kit, JobFilter(task="send"), JobState.CANCELLED) == ("c",)


async def test_they_are_listed_by_time(kit: Kit) -> None:
    await bury(kit, "send", TYPED, "a")
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    at = record.changed_at
    assert at is not None
    await bury(kit, "send", TYPED, "b")
    just = timedelta(milliseconds=1)
    for task in ("", "send"):
        assert await ids(kit, JobFilter(task=task, since=at + just)) == ("b",)
        assert await ids(kit, JobFilter(task=task, until=at)) == ("a",)
        assert await ids(kit, JobFilter(task=task, since=at, until=at)) == ("a",)


async def test_scheduled_jobs_are_listed_by_due_time(kit: Kit) -> None:
    first = kit.now + 100
    await kit.put(*(Job(f"j{i}", "t", {}, available_at=first + i) for i in range(4)))
    due = datetime.fromtimestamp(first, UTC)
    since, until = due + timedelta(seconds=0.5), due + timedelta(seconds=2.5)
    assert await ids(kit, JobFilter(since=since), JobState.SCHEDULED) == ("j1", "j2", "j3")
    assert await ids(kit, JobFilter(until=until), JobState.SCHEDULED) == ("j0", "j1", "j2")


@pytest.mark.parametrize(
    ("state", "within"),
    [
        (JobState.READY, JobFilter(task="t")),
        (JobState.READY, JobFilter(since=datetime.now(UTC))),
        (JobState.SUCCEEDED, JobFilter(error="E-1")),
        (JobState.DEAD, JobFilter(task="t", error="E-1")),
    ],
)
async def test_a_filter_that_a_state_does_not_serve_is_refused(
    kit: Kit, state: JobState, within: JobFilter
) -> None:
    with pytest.raises(ConfigurationError):
        await kit.broker.list_jobs(kit.queue, state, within)


@pytest.mark.parametrize("within", [EVERY_JOB, JobFilter(task="send")])
async def test_pages_leave_nothing_out_while_jobs_go(kit: Kit, within: JobFilter) -> None:
    names = [f"j{i:02}" for i in range(12)]
    await kit.put(*(Job(name, "send", {}) for name in names))
    held = (await kit.exchange(want=12)).claimed
    # Of one millisecond: their order is that of their ids.
    await kit.exchange(*(Settlement(h.id, h.token, Outcome.bury(TYPED)) for h in held))
    seen: list[str] = []
    cursor = None
    for _ in range(6):
        page = await kit.broker.list_jobs(kit.queue, JobState.DEAD, within, cursor=cursor, limit=2)
        seen += page.ids
        await kit.broker.purge(kit.queue, page.ids)
        cursor = page.cursor
    assert cursor is None
    assert sorted(seen) == names


async def test_errors_are_grouped_the_most_frequent_first(kit: Kit) -> None:
    await bury(kit, "send", JobError("TypeError", "expected 3 values, got 5"), "a")
    await bury(kit, "send", TYPED, "b")
    await bury(kit, "send", VALUED, "c")
    typed, valued = await kit.broker.list_errors(kit.queue)
    assert (typed.fingerprint, typed.count, typed.example) == (TYPED.fingerprint, 2, "b")
    assert typed.error == TYPED
    assert typed.first_at < typed.last_at
    assert (valued.count, valued.example) == (1, "c")
    await kit.broker.replay(kit.queue, ["a", "b"])
    assert [group.fingerprint for group in await kit.broker.list_errors(kit.queue)] == [
        VALUED.fingerprint
    ]


async def test_jobs_of_lost_workers_have_a_fingerprint_of_their_own(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, poison_cap=1))
    await kit.put(Job("a", "t", {}))
    await kit.exchange(want=1, worker="w9")
    await kit.let_pass(LEASE + timedelta(milliseconds=100))
    await kit.broker.upkeep(kit.queue)
    (group,) = await kit.broker.list_errors(kit.queue)
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert record.error is not None
    assert group.fingerprint == record.error.fingerprint == "LeaseExpired"


async def test_a_replayed_job_has_all_its_attempts_again(kit: Kit) -> None:
    await bury(kit, "send", TYPED, "a")
    answers = await kit.broker.replay(kit.queue, ["a", "nobody", "a"])
    assert answers == (ReplayAnswer.REPLAYED, ReplayAnswer.UNKNOWN, ReplayAnswer.NOT_DEAD)
    (held,) = (await kit.exchange(want=1)).claimed
    assert (held.id, held.attempt, held.losses, held.releases) == ("a", 1, 0, 0)
    await kit.exchange(Settlement(held.id, held.token, Outcome.complete()))
    assert await state_of(kit, "a") is JobState.SUCCEEDED
    assert await ids(kit, JobFilter(task="send")) == ()


async def test_replay_wakes_a_waiting_worker(kit: Kit) -> None:
    await bury(kit, "send", TYPED, "a")
    while await kit.broker.wait_for_document(kit.queue, timedelta(milliseconds=50)):
        await kit.exchange(woken=True)
    await kit.broker.replay(kit.queue, ["a"])
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=1)) == b"!"


async def test_a_replayed_document_is_validated_anew(kit: Kit) -> None:
    raw = b'{"task": 5}'
    await kit.put_document(raw)
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=1)) == raw
    await kit.broker.intake(kit.queue, [], [RejectedDocument(raw, "bad-1", VALUED)])
    assert await kit.broker.replay(kit.queue, ["bad-1"]) == (ReplayAnswer.REPLAYED,)
    assert await state_of(kit, "bad-1") is None
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=1)) == raw
    assert await kit.broker.list_errors(kit.queue) == ()


async def test_all_that_fit_are_replayed_in_batches(kit: Kit) -> None:
    count = 230
    await kit.put(*(Job(f"j{i:03}", "send", {}) for i in range(count)))
    held = (await kit.exchange(want=count)).claimed
    await kit.exchange(*(Settlement(h.id, h.token, Outcome.bury(TYPED)) for h in held))
    await bury(kit, "fetch", VALUED, "other")
    answers = await replay_all(kit.broker, kit.queue, JobFilter(error=TYPED.fingerprint))
    assert answers == Counter({ReplayAnswer.REPLAYED: count})
    stats = await kit.broker.stats(kit.queue)
    assert (stats.states[JobState.READY], stats.states[JobState.DEAD]) == (count, 1)


async def test_ended_jobs_are_purged_and_their_ids_stay_known(kit: Kit) -> None:
    await bury(kit, "send", TYPED, "a", "b")
    await kit.put(Job("c", "send", {}))
    answers = await kit.broker.purge(kit.queue, ["a", "c", "nobody"])
    assert answers == (PurgeAnswer.PURGED, PurgeAnswer.UNFINISHED, PurgeAnswer.UNKNOWN)
    assert await state_of(kit, "a") is None
    assert await kit.put(Job("a", "send", {})) == (False,)
    answers_of_all = await purge_all(kit.broker, kit.queue, JobState.DEAD, EVERY_JOB)
    assert answers_of_all == Counter({PurgeAnswer.PURGED: 1})
    assert await kit.broker.list_errors(kit.queue) == ()


async def test_dead_letters_dropped_for_their_number_are_counted(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, keep_count=3))
    await bury(kit, "send", TYPED, *(f"j{i}" for i in range(5)))
    reply = await kit.broker.upkeep(kit.queue)
    assert (reply.dead, reply.dead_limit, reply.dead_dropped) == (3, 3, 2)
    assert await ids(kit, EVERY_JOB) == ("j4", "j3", "j2")
    (group,) = await kit.broker.list_errors(kit.queue)
    assert group.count == 3


async def test_those_past_their_time_are_not_counted_as_dropped(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, keep_dead=timedelta(milliseconds=100)))
    await bury(kit, "send", TYPED, "a")
    await kit.let_pass(timedelta(milliseconds=200))
    reply = await kit.broker.upkeep(kit.queue)
    assert (reply.pruned, reply.dead, reply.dead_dropped) == (1, 0, 0)


async def test_a_cursor_of_something_else_is_refused(kit: Kit) -> None:
    for cursor in ("", "5", "x:y", "0 a"):
        with pytest.raises(ConfigurationError, match="page before"):
            await kit.broker.list_jobs(kit.queue, JobState.DEAD, cursor=cursor)
