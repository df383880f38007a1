"""Jobs whose task no worker knew: they wait, ask for no worker, and run when one announces it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.conftest import Kit
from tidework.broker.redis import redis_broker as redis
from tidework.model.backlog import QueueLoad
from tidework.model.job import Job, JobState
from tidework.model.lease import ClaimedJob, Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.model.unique import OnConflict, Unique

SHORT = timedelta(milliseconds=200)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


async def claim(kit: Kit) -> ClaimedJob:
    (held,) = (await kit.exchange(want=1)).claimed
    return held


async def give_back(kit: Kit, delay: timedelta = MINUTE, unknown_for: timedelta = HOUR) -> str:
    held = await claim(kit)
    outcome = Outcome.release_unknown(delay, unknown_for, "unknown task")
    await kit.exchange(Settlement(held.id, held.token, outcome))
    return held.id


async def load_of(kit: Kit, horizon: timedelta = timedelta(seconds=10)) -> QueueLoad:
    return await kit.broker.gather(kit.queue, horizon=horizon)


def asked(load: QueueLoad) -> tuple[int, int, int]:
    return load.backlog, load.due_soon, load.unknown


async def test_it_asks_for_no_worker_neither_now_nor_when_it_is_due(kit: Kit) -> None:
    await kit.put(Job("a", "sned", {}), Job("b", "t", {}, available_at=kit.now + 3600))
    assert asked(await load_of(kit)) == (1, 0, 0)
    await give_back(kit, SHORT)
    load = await load_of(kit)
    assert asked(load) == (0, 0, 1)
    assert load.unknown_task == "sned"
    await kit.let_pass(SHORT * 1.5)
    assert asked(await load_of(kit)) == (0, 0, 1)
    await kit.broker.upkeep(kit.queue)
    assert (await kit.broker.stats(kit.queue)).states[JobState.READY] == 1
    assert asked(await load_of(kit)) == (0, 0, 1)
    # Whoever looks meanwhile gets it: another worker may know it.
    assert await give_back(kit) == "a"
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert (record.attempt, record.releases) == (0, 2)
    assert record.history[0].cause == "unknown task"


async def test_it_asks_for_one_when_its_wait_is_over(kit: Kit) -> None:
    await kit.put(Job("a", "sned", {}))
    await give_back(kit, HOUR, SHORT)
    assert asked(await load_of(kit)) == (0, 1, 1)
    assert asked(await load_of(kit, timedelta(milliseconds=1))) == (0, 0, 1)
    await kit.let_pass(SHORT * 1.5)
    assert asked(await load_of(kit)) == (1, 0, 0)
    held = await claim(kit)
    error = JobError("UnknownTaskError", "no", cause="unknown_task")
    await kit.exchange(Settlement(held.id, held.token, Outcome.bury(error)))
    assert asked(await load_of(kit)) == (0, 0, 0)


async def test_a_worker_that_knows_the_task_gets_it_at_once(kit: Kit) -> None:
    await kit.put(Job("a", "new", {}), Job("b", "other", {}))
    for _ in "ab":
        await give_back(kit)
    assert await kit.broker.announce(kit.queue, "v1", ["send"]) == 0
    load = await load_of(kit)
    assert (asked(load), load.announced) == ((0, 0, 2), "v1")
    assert await kit.broker.announce(kit.queue, "v2", ["send", "new"]) == 1
    load = await load_of(kit)
    assert (asked(load), load.announced) == ((1, 0, 1), "v2")
    held = await claim(kit)
    assert held.id == "a"
    await kit.exchange(Settlement(held.id, held.token, Outcome.complete()))
    assert asked(await load_of(kit)) == (0, 0, 1)
    assert await kit.broker.tasks(kit.queue) == ("new", "send")


async def test_one_that_is_due_and_becomes_known_asks_for_a_worker(kit: Kit) -> None:
    await kit.put(Job("a", "new", {}))
    await give_back(kit, SHORT)
    await kit.let_pass(SHORT * 1.5)
    await kit.broker.upkeep(kit.queue)
    assert await kit.broker.announce(kit.queue, "", ["new"]) == 1
    assert asked(await load_of(kit)) == (1, 0, 0)
    assert (await claim(kit)).id == "a"


async def test_nothing_of_it_stays_when_it_is_cancelled_or_replaced(kit: Kit) -> None:
    replacing = Unique("k", on_conflict=OnConflict.REPLACE)
    await kit.put(Job("a", "sned", {}), Job("b", "sned", {}, unique=replacing))
    for _ in "ab":
        await give_back(kit)
    assert asked(await load_of(kit)) == (0, 0, 2)
    await kit.broker.cancel(kit.queue, "a")
    assert asked(await load_of(kit)) == (0, 0, 1)
    await kit.put(Job("c", "send", {}, unique=replacing))
    assert asked(await load_of(kit)) == (1, 0, 0)


async def test_a_job_that_is_lost_or_fails_after_it_was_given_back_asks_again(kit: Kit) -> None:
    boom = JobError("ValueError", "boom")
    for name, outcome in (
        ("a", Outcome.loss(boom)),
        ("b", Outcome.retry(boom, timedelta(0))),
        ("c", Outcome.release()),
    ):
        await kit.put(Job(name, "t", {}))
        await give_back(kit, timedelta(0))
        held = await claim(kit)
        await kit.exchange(Settlement(held.id, held.token, outcome))
        load = await load_of(kit)
        assert (load.backlog + load.due_soon, load.unknown) == (1, 0), name
        await kit.broker.cancel(kit.queue, name)


async def test_many_are_looked_at_in_several_steps(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis, "ANNOUNCE_BATCH", 3)
    names = [f"j{i}" for i in range(11)]
    await kit.put(*(Job(name, "new" if i % 2 else "old", {}) for i, name in enumerate(names)))
    for _ in names:
        await give_back(kit)
    assert await kit.broker.announce(kit.queue, "", ["new"]) == 5
    assert asked(await load_of(kit)) == (5, 0, 6)
    reply = await kit.exchange(want=20)
    assert sorted(found.id for found in reply.claimed) == sorted(names[1::2])


async def test_its_wait_counts_from_the_first_look_and_ends_as_a_dead_letter(kit: Kit) -> None:
    await kit.put(Job("a", "sned", {}, created_at=kit.now - 86_400))
    await give_back(kit, timedelta(0), SHORT)
    await give_back(kit, timedelta(0), HOUR)  # a worker with another setting prolongs nothing
    await kit.let_pass(SHORT * 1.5)
    await give_back(kit, MINUTE, SHORT)

    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert record.state is JobState.DEAD
    assert record.error is not None
    assert (record.error.type, record.error.cause) == ("UnknownTaskError", "unknown_task")
    assert record.error.message == "unknown task; no worker knew it for 0 s"
    assert asked(await load_of(kit)) == (0, 0, 0)


async def test_a_release_for_another_reason_begins_the_wait_again(kit: Kit) -> None:
    await kit.put(Job("a", "sned", {}))
    await give_back(kit, timedelta(0), SHORT)
    held = await claim(kit)
    await kit.exchange(Settlement(held.id, held.token, Outcome.release()))
    await kit.let_pass(SHORT * 1.5)
    await give_back(kit, MINUTE, HOUR)

    assert asked(await load_of(kit)) == (0, 0, 1)
