"""Two schedulers, and a Redis that goes away: no fire lost, none doubled."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest

from tests.unit.scheduler.rig import QUEUE, Rig, make_spec, unix
from tidework.model.fire import Verdict
from tidework.model.identity import QueueName
from tidework.scheduler.due import CatchUp, CatchUpMode

ENQUEUED = Verdict.ENQUEUED
TTL_AND_A_ROUND = timedelta(seconds=8)


async def test_two_schedulers_at_once_fire_once() -> None:
    first = Rig(make_spec())
    second = first.another()
    for _ in range(185):
        first.clock.advance(timedelta(seconds=1))
        await asyncio.gather(first.settle(), second.settle())

    assert await first.verdicts() == {ENQUEUED: 3}
    assert len(await first.jobs()) == 3
    fired = [rig.scheduler.counters.verdicts[ENQUEUED] for rig in (first, second)]
    assert sorted(fired) == [0, 3]


async def test_two_that_both_believe_to_lead_fire_once() -> None:
    """As in a split: each has a term, the higher one counts."""
    first = Rig(make_spec())
    await first.run_to("10:00:58")
    second = first.another()
    first.clock.advance(TTL_AND_A_ROUND)
    await second.settle()
    assert first.leadership.term(QUEUE) is not None
    assert second.leadership.term(QUEUE) is not None

    await first.scheduler.tick()
    await second.scheduler.tick()

    assert await first.jobs() == [f"digest-{unix('10:01:00')}"]
    assert first.scheduler.counters.fenced_writes == 1
    assert first.leadership.term(QUEUE) is None


async def test_the_second_takes_over_when_the_first_is_gone() -> None:
    first = Rig(make_spec())
    second = first.another()
    await first.run_to("10:01:30")
    await second.settle()
    assert second.leadership.term(QUEUE) is None

    await second.run_to("10:02:05")

    assert await first.verdicts() == {ENQUEUED: 2}
    assert second.scheduler.counters.verdicts == {ENQUEUED: 1}


async def test_the_second_takes_over_at_once_after_an_orderly_stop() -> None:
    first = Rig(make_spec())
    second = first.another()
    await first.run_to("10:00:59")

    await first.leadership.resign()
    await second.settle()

    assert second.leadership.term(QUEUE) is not None


async def test_fires_missed_during_a_takeover_are_replayed_in_full() -> None:
    first = Rig(make_spec("* * * * *", catch_up=CatchUp(CatchUpMode.NONE)))
    await first.run_to("10:00:59")
    second = first.another()

    await second.outage_to("10:01:40")

    assert await first.verdicts() == {ENQUEUED: 1}


async def test_leader_frozen_before_the_fire_standby_fires_leader_thaws(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = Rig(make_spec())
    await first.run_to("10:00:59")
    second = first.another()
    reached, thaw = first.broker.hold("decide_fires")
    first.clock.advance(timedelta(seconds=2))
    frozen = asyncio.create_task(first.scheduler.tick())
    await reached.wait()

    first.clock.advance(TTL_AND_A_ROUND)
    await second.settle()
    assert await first.jobs() == [f"digest-{unix('10:01:00')}"]
    with caplog.at_level(logging.WARNING):
        thaw.set()
        await frozen
        await first.run_to("10:01:13")

    assert await first.jobs() == [f"digest-{unix('10:01:00')}"]
    assert await first.verdicts() == {ENQUEUED: 1}
    assert first.scheduler.counters.fenced_writes == 1
    assert first.leadership.term(QUEUE) is None
    refusals = [r for r in caplog.records if "a write was refused" in r.getMessage()]
    assert len(refusals) == 1


async def test_a_leader_refused_once_may_lead_again_later() -> None:
    first = Rig(make_spec())
    await first.run_to("10:00:30")
    second = first.another()
    first.clock.advance(TTL_AND_A_ROUND)
    await second.settle()
    await first.settle()
    assert first.leadership.term(QUEUE) is None
    await second.leadership.resign()

    await first.run_to("10:02:00")

    assert first.leadership.term(QUEUE) is not None
    assert await first.verdicts() == {ENQUEUED: 2}


@pytest.mark.parametrize("method", ["decide_fires", "admit_cron", "put_crontasks", "cron_record"])
@pytest.mark.parametrize("fault", ["lost", "silent"])
async def test_a_call_without_reply_neither_loses_nor_doubles_a_fire(
    method: str, fault: str
) -> None:
    rig = Rig(make_spec(catch_up=CatchUp(CatchUpMode.ALL)))
    rig.broker.fail(method, fault, fault)

    await rig.run_to("10:03:30")

    assert await rig.jobs() == [f"digest-{unix(f'10:0{m}:00')}" for m in (1, 2, 3)]
    assert await rig.verdicts() == {ENQUEUED: 3}
    assert rig.scheduler.counters.failed_rounds >= 1


@pytest.mark.parametrize("fault", ["lost", "silent"])
async def test_a_manual_run_without_reply_happens_once(fault: str) -> None:
    rig = Rig(make_spec("0 0 * * *", run_now="now"))
    rig.broker.fail("run_now", fault)

    await rig.run_to("10:00:10")

    assert len(await rig.jobs()) == 1


@pytest.mark.parametrize("fault", ["lost", "silent"])
async def test_a_resume_without_reply_loses_no_later_fire(fault: str) -> None:
    """The start is the moment of the change, not of the attempt that got through."""
    rig = Rig(make_spec(suspend=True))
    await rig.run_to("10:00:59")
    rig.broker.fail("admit_cron", fault)
    rig.change(suspend=False)
    await rig.settle()

    await rig.run_to("10:01:10")

    assert await rig.verdicts() == {ENQUEUED: 1}


async def test_redis_away_during_a_fire_and_back(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(make_spec())
    await rig.run_to("10:00:58")
    rig.broker.away = True
    with caplog.at_level(logging.INFO):
        await rig.run_to("10:01:20")
        status = await rig.scheduler.status("digest")
        assert status is not None
        assert status.reason == "Redis cannot be used: Redis cannot be reached"
        assert await rig.jobs() == []
        rig.broker.away = False
        await rig.run_to("10:01:25")

    assert await rig.jobs() == [f"digest-{unix('10:01:00')}"]
    said = [r.getMessage() for r in caplog.records if r.name == "tidework.scheduler.scheduler"]
    assert said == [
        "fires of queue shop/emails have to wait: Redis cannot be reached",
        "queue shop/emails is served again",
    ]


async def test_trouble_with_one_queue_does_not_keep_the_others_waiting() -> None:
    other = QueueName("shop", "reports")
    rig = Rig(make_spec(), make_spec(uid="other", queue=other))
    await rig.settle()
    rig.broker.fail("decide_fires", "lost")
    await rig.run_to("10:01:00")

    fired = [await rig.memory.cron_record(queue, uid) for queue, uid in _pairs(other)]
    assert sorted(record.verdicts[ENQUEUED] for record in fired if record) == [0, 1]
    await rig.run_to("10:01:05")
    fired = [await rig.memory.cron_record(queue, uid) for queue, uid in _pairs(other)]
    assert [record.verdicts[ENQUEUED] for record in fired if record] == [1, 1]


def _pairs(other: QueueName) -> list[tuple[QueueName, str]]:
    return [(QUEUE, "digest"), (other, "other")]


async def test_a_refused_fire_in_a_batch_of_many_is_not_passed_by_a_later_one() -> None:
    """Each request holds one fire of a CronTask, so that order within one never rests on luck."""
    rig = Rig(make_spec(catch_up=CatchUp(CatchUpMode.ALL)))
    await rig.settle()
    seen: list[list[str]] = []
    real = rig.memory.decide_fires

    async def watch(queue: QueueName, term: int, requests: object) -> object:
        seen.append([request.uid for request in requests])  # type: ignore[attr-defined]
        return await real(queue, term, requests)  # type: ignore[arg-type]

    rig.memory.decide_fires = watch  # type: ignore[assignment,method-assign]
    await rig.outage_to("10:30:00")

    assert sum(len(uids) for uids in seen) == 30
    assert all(len(uids) == len(set(uids)) for uids in seen)
