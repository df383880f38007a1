"""What happened to jobs is counted by task and time: each transition once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.conftest import LEASE, Kit
from tidework.broker.documents import AcceptedDocument, RejectedDocument
from tidework.model.fire import FireRequest, Verdict
from tidework.model.job import Job
from tidework.model.lease import QueueLimits, RunTimes, Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.model.statistics import (
    ALL_TASKS,
    MOST_TASKS,
    NO_TASK,
    OTHER_TASKS,
    Histogram,
    Step,
    Totals,
)

BOOM = JobError("ValueError", "boom")
SECOND = timedelta(seconds=1)


def job(name: str, task: str = "send", due: float | None = None) -> Job:
    return Job(name, task, {}, available_at=due)


async def totals(kit: Kit, task: str = "send") -> Totals:
    """Of the last hour: by the summary, and by the series, which say the same."""
    found = {each.task: each.hour for each in await kit.broker.statistics(kit.queue)}
    one = {each.task: each.hour for each in await kit.broker.statistics(kit.queue, task)}
    assert one == {name: totals for name, totals in found.items() if name == task}
    series = await kit.broker.series(kit.queue, Step.MINUTE, task=task)
    assert Totals.of(point.totals for point in series.points) == found.get(task, Totals())
    return found.get(task, Totals())


async def counts(kit: Kit, task: str = "send") -> dict[str, int]:
    """Those that are not 0."""
    found = await totals(kit, task)
    names = ("enqueued", "started", "succeeded", "failed", "retried", "dead", "lost", "released")
    numbers = {name: getattr(found, name) for name in (*names, "cancelled")}
    return {name: number for name, number in numbers.items() if number}


async def claim(kit: Kit, want: int = 1) -> list[Settlement]:
    """Successes of what was claimed, not sent yet."""
    reply = await kit.exchange(want=want)
    return [Settlement(found.id, found.token, Outcome.complete()) for found in reply.claimed]


async def test_a_queue_of_which_nothing_was_counted(kit: Kit) -> None:
    assert await kit.broker.statistics(kit.queue) == ()
    assert (await kit.broker.series(kit.queue, Step.DAY)).points == ()


async def test_the_way_of_jobs_is_counted_by_task(kit: Kit) -> None:
    await kit.put(job("a"), job("b"), job("c", "tidy"), job("later", due=kit.now + 60))
    await kit.exchange(*await claim(kit, want=3))

    assert await counts(kit) == {"enqueued": 3, "started": 2, "succeeded": 2}
    assert await counts(kit, "tidy") == {"enqueued": 1, "started": 1, "succeeded": 1}
    assert await counts(kit, ALL_TASKS) == {"enqueued": 4, "started": 3, "succeeded": 3}
    assert [each.task for each in await kit.broker.statistics(kit.queue)] == [
        ALL_TASKS,
        "send",
        "tidy",
    ]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.complete(b"7"), {"succeeded": 1}),
        (Outcome.retry(BOOM, SECOND), {"failed": 1, "retried": 1}),
        (Outcome.bury(BOOM), {"failed": 1, "dead": 1}),
        (Outcome.loss(BOOM), {"lost": 1}),
        (Outcome.release(SECOND), {"released": 1}),
        (Outcome.release_unknown(SECOND, 60 * SECOND, "unknown"), {"released": 1}),
        (Outcome.cancelled("stopped"), {"cancelled": 1}),
    ],
    ids=lambda value: value.kind.name.lower() if isinstance(value, Outcome) else "",
)
async def test_each_end_of_an_attempt(kit: Kit, outcome: Outcome, expected: dict[str, int]) -> None:
    await kit.put(job("a"))
    (end,) = await claim(kit)
    await kit.exchange(replace(end, outcome=outcome))

    assert await counts(kit) == {"enqueued": 1, "started": 1, **expected}


async def test_a_job_that_is_lost_too_often_is_lost_and_dead(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, poison_cap=1))
    await kit.put(job("a"))
    (end,) = await claim(kit)
    await kit.exchange(replace(end, outcome=Outcome.loss(BOOM)))

    assert await counts(kit) == {"enqueued": 1, "started": 1, "lost": 1, "dead": 1}


async def test_a_lease_that_runs_out_is_a_loss(kit: Kit) -> None:
    await kit.put(job("a"))
    await claim(kit)
    await kit.broker.upkeep(kit.queue)
    await kit.let_pass(2 * LEASE)
    await kit.broker.upkeep(kit.queue)

    assert await counts(kit) == {"enqueued": 1, "started": 1, "lost": 1}


async def test_a_job_that_is_cancelled_while_it_waits(kit: Kit) -> None:
    await kit.put(job("a"))
    await kit.broker.cancel(kit.queue, "a")
    await kit.broker.cancel(kit.queue, "a")

    assert await counts(kit) == {"enqueued": 1, "cancelled": 1}


async def test_documents_and_fires_are_counted_like_what_is_enqueued(kit: Kit) -> None:

    good, bad = b'{"task":"send"}', b"bad"
    await kit.put_document(bad)
    await kit.put_document(good)
    for _ in range(2):
        await kit.broker.wait_for_document(kit.queue, SECOND)
    accepted = AcceptedDocument(good, job("a"), job("a").encode(), named=False)
    rejected = RejectedDocument(bad, "b", BOOM)
    for _ in range(2):  # a copy of the request counts nothing
        await kit.broker.intake(kit.queue, [accepted], [rejected])
    await kit.broker.put_crontasks(kit.queue, 1, {"c": b"{}"})
    await kit.broker.admit_cron(kit.queue, 1, "c", "f", 900, reset=False)
    fire = FireRequest("c", "f", 1000, Verdict.ENQUEUED, job=job("c-1000", "tidy"))
    for _ in range(2):
        await kit.broker.decide_fires(kit.queue, 1, [fire])
    for _ in range(2):
        await kit.broker.run_now(kit.queue, 1, "c", "n", job("by-hand", "tidy"))

    assert await counts(kit) == {"enqueued": 1}
    assert await counts(kit, NO_TASK) == {"dead": 1}
    assert await counts(kit, "tidy") == {"enqueued": 2}


async def test_what_is_sent_again_is_not_counted_again(kit: Kit) -> None:
    await kit.put(job("a"))
    await kit.put(job("a"))
    ends = await claim(kit)
    await kit.exchange(want=1, sequence=1)
    ran = {"send": RunTimes(1, 0.25, {15: 1})}
    for _ in range(3):
        await kit.exchange(*ends, sequence=2, served=ran)
    await kit.exchange(*ends, sequence=3)  # of a lease that is over

    assert await counts(kit) == {"enqueued": 1, "started": 1, "succeeded": 1}
    assert (await totals(kit)).run == Histogram({15: 1}, 0.25)


async def test_each_wait_is_in_its_bucket(kit: Kit) -> None:
    # In seconds: 10 lies in the bucket from 8.2 to 11.6, 100 in that from 92.7 to 131.
    tens = [job(f"ten{i}", due=kit.now - 10 + i / 1000) for i in range(3)]
    await kit.put(*tens, job("hundred", due=kit.now - 100))
    await kit.exchange(want=9)

    found = (await totals(kit)).wait
    assert found.counts == {27: 3, 34: 1}
    assert found.total == pytest.approx(130, abs=2)


async def test_an_attempt_waits_since_it_was_due(kit: Kit) -> None:
    await kit.put(job("a", due=kit.now - 1000))
    (end,) = await claim(kit)
    await kit.exchange(replace(end, outcome=Outcome.retry(BOOM, timedelta(0))))
    await claim(kit)

    found = (await totals(kit)).wait
    assert found.count == 2
    assert found.total == pytest.approx(1000, abs=2)


async def test_run_times_are_those_that_the_worker_tells(kit: Kit) -> None:
    ran = {"send": RunTimes(3, 0.012345, {0: 1, 5: 1, 6: 1}), "tidy": RunTimes(1, 7.5, {26: 1})}
    await kit.exchange(served=ran)
    await kit.exchange(served={"send": RunTimes(1, 0.004, {5: 1})})

    assert (await totals(kit)).run == Histogram({0: 1, 5: 2, 6: 1}, 0.016345)
    assert (await totals(kit, "tidy")).run == Histogram({26: 1}, 7.5)
    assert (await totals(kit, ALL_TASKS)).run.count == 5


async def test_days_hours_and_minutes_have_the_same_sum(kit: Kit) -> None:
    await kit.put(*(job(f"j{i}") for i in range(3)))
    await kit.exchange(*await claim(kit, want=3))

    (found,) = [each for each in await kit.broker.statistics(kit.queue) if each.task == "send"]
    assert found.hour == found.day
    for step in Step:
        series = await kit.broker.series(kit.queue, step, task="send")
        assert Totals.of(point.totals for point in series.points) == found.day
        for point in series.points:
            assert point.at.timestamp() % step.length.total_seconds() == 0
            assert point.at.timestamp() <= kit.now


async def test_a_series_has_bounds(kit: Kit) -> None:
    await kit.put(job("a"))
    now = datetime.fromtimestamp(kit.now, UTC)

    async def number(since: datetime | None = None, until: datetime | None = None) -> int:
        series = await kit.broker.series(kit.queue, Step.MINUTE, since=since, until=until)
        return len(series.points)

    assert await number(since=now - timedelta(minutes=2), until=now + timedelta(minutes=2)) == 1
    assert await number(since=now + timedelta(minutes=2)) == 0
    assert await number(until=now - timedelta(minutes=2)) == 0
    assert await number(since=datetime(1970, 1, 2, tzinfo=UTC)) == 1


async def test_many_tasks_are_kept_in_so_many_rows(kit: Kit) -> None:
    every = [f"task-{number:03}" for number in range(MOST_TASKS + 5)]
    rounds = 12  # more than is written down before it is added up
    for _ in range(rounds):
        await kit.exchange(served={task: RunTimes(1, 0.5, {18: 1}) for task in every})

    found = {each.task: each.hour.run.count for each in await kit.broker.statistics(kit.queue)}
    assert found.pop(ALL_TASKS) == rounds * len(every)
    assert found.pop(OTHER_TASKS) == rounds * 5
    assert set(found.values()) == {rounds}
    assert len(found) == MOST_TASKS
