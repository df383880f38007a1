"""Many jobs at once, by a text; and one that is not to wait until it is due."""

from __future__ import annotations

from datetime import timedelta

from tests.contract.conftest import Kit
from tidework.broker.answers import PromoteAnswer
from tidework.model.backlog import SHOWN_BYTES
from tidework.model.job import Job, JobState
from tidework.model.lease import Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.model.unique import OnConflict, Unique


async def found(kit: Kit, *ids: str, text: str = "") -> list[str]:
    return [each.record.id for each in await kit.broker.get_jobs(kit.queue, ids, text=text)]


async def test_jobs_come_in_the_order_of_their_ids(kit: Kit) -> None:
    await kit.put(Job("a", "t", {}), Job("b", "t", {}), Job("c", "t", {}, delay=60))

    assert await found(kit, "c", "nothing", "a", "b") == ["c", "a", "b"]
    assert await found(kit) == []


async def test_a_job_is_told_as_if_it_were_looked_at_alone(kit: Kit) -> None:
    await kit.put(Job("a", "t", {"n": 1}), Job("b", "t", {}, delay=60))
    await kit.exchange(want=1)

    for each in await kit.broker.get_jobs(kit.queue, ["a", "b"]):
        assert each.record == await kit.broker.get_job(kit.queue, each.record.id)
        assert not each.is_cut


async def test_a_text_is_looked_for_in_id_task_params_and_error(kit: Kit) -> None:
    await kit.put(
        Job("order-7", "t", {}), Job("b", "send.mail", {}), Job("c", "t", {"to": "Zoë [x]"})
    )
    every = ("order-7", "b", "c")

    assert await found(kit, *every, text="order-") == ["order-7"]
    assert await found(kit, *every, text="mail") == ["b"]
    assert await found(kit, *every, text="Zoë") == ["c"]
    assert await found(kit, *every, text="[x]") == ["c"]
    assert await found(kit, *every, text="%a") == []
    assert await found(kit, *every, text="zoë") == []


async def test_of_a_long_envelope_there_is_the_beginning(kit: Kit) -> None:
    await kit.put(Job("a", "t", {"text": "x" * SHOWN_BYTES + "needle"}))

    (each,) = await kit.broker.get_jobs(kit.queue, ["a"], text="needle")

    assert each.is_cut
    assert 0 < len(each.record.body) <= SHOWN_BYTES + 40


async def test_a_scheduled_job_is_made_ready_by_hand(kit: Kit) -> None:
    await kit.put(Job("early", "t", {}), Job("late", "t", {}, delay=3600))

    answer = await kit.broker.promote(kit.queue, "late")

    record = await kit.broker.get_job(kit.queue, "late")
    assert answer is PromoteAnswer.PROMOTED
    assert record is not None
    assert record.state is JobState.READY
    assert [job.id for job in (await kit.exchange(want=2)).claimed] == ["early", "late"]
    stats = await kit.broker.stats(kit.queue)
    assert stats.counters["promoted_by_hand"] == 1


async def test_a_retry_does_not_wait_for_its_pause(kit: Kit) -> None:
    await kit.put(Job("a", "t", {}))
    (held,) = (await kit.exchange(want=1)).claimed
    outcome = Outcome.retry(JobError("Timeout", "too slow", "failed"), timedelta(hours=1))
    await kit.exchange(Settlement(held.id, held.token, outcome))

    assert await kit.broker.promote(kit.queue, "a") is PromoteAnswer.PROMOTED

    (job,) = (await kit.exchange(want=1)).claimed
    assert (job.id, job.attempt) == ("a", 2)


async def test_what_is_not_scheduled_is_not_promoted(kit: Kit) -> None:
    await kit.put(Job("running", "t", {}))
    await kit.exchange(want=1)
    await kit.put(Job("ended", "t", {}))
    await kit.broker.cancel(kit.queue, "ended")
    await kit.put(Job("ready", "t", {}))

    answers = [
        await kit.broker.promote(kit.queue, job_id)
        for job_id in ("running", "ended", "ready", "nothing")
    ]

    assert answers == [
        PromoteAnswer.RUNNING,
        PromoteAnswer.ENDED,
        PromoteAnswer.READY,
        PromoteAnswer.UNKNOWN,
    ]


async def test_a_job_that_waits_for_the_one_it_replaces_stays_where_it_is(kit: Kit) -> None:
    replace = Unique("key", on_conflict=OnConflict.REPLACE)
    await kit.put(Job("old", "t", {}, unique=replace))
    await kit.exchange(want=1)
    await kit.put(Job("new", "t", {}, unique=replace))

    assert await kit.broker.promote(kit.queue, "new") is PromoteAnswer.HELD

    record = await kit.broker.get_job(kit.queue, "new")
    assert record is not None
    assert record.state is JobState.SCHEDULED


async def test_the_line_is_that_of_ready_jobs(kit: Kit) -> None:
    await kit.put(
        Job("slow", "t", {}, priority=9), Job("first", "t", {}, priority=0), Job("next", "t", {})
    )
    await kit.put(Job("later", "t", {}, delay=60))

    found = [
        await kit.broker.ahead_of(kit.queue, job_id)
        for job_id in ("first", "next", "slow", "later", "nothing")
    ]

    assert found == [0, 1, 2, None, None]


async def test_a_job_that_does_not_run_is_deleted(kit: Kit) -> None:
    await kit.put(Job("runs", "t", {}))
    await kit.exchange(want=1)
    await kit.put(
        Job("ready", "t", {}),
        Job("later", "t", {}, delay=60, unique=Unique("k")),
        Job("gone", "t", {}),
    )
    await kit.broker.cancel(kit.queue, "gone")

    answers = [
        await kit.broker.delete(kit.queue, job_id)
        for job_id in ("runs", "ready", "later", "gone", "nothing", "ready")
    ]

    assert answers == ["running", "deleted", "deleted", "deleted", "unknown", "unknown"]
    record = await kit.broker.get_job(kit.queue, "runs")
    assert record is not None
    assert not record.cancel_requested
    assert await found(kit, "ready", "later", "gone") == []
    assert await kit.put(Job("ready", "t", {})) == (False,)
    assert await kit.put(Job("other", "t", {}, unique=Unique("k"))) == (True,)
    assert (await kit.broker.stats(kit.queue)).counters["purged"] == 3
