"""Fires that were due while nobody could decide them."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from tests.support.logs import events, lines
from tests.unit.scheduler.rig import QUEUE, START, Rig, at, make_spec, unix
from tidework.model.fire import Verdict
from tidework.model.job import JobState
from tidework.scheduler.due import CatchUp, CatchUpMode, from_unix

ENQUEUED, SKIPPED = Verdict.ENQUEUED, Verdict.SKIPPED_OVERLAP


@pytest.mark.parametrize("mode", list(CatchUpMode))
@pytest.mark.parametrize("missed", [0, 1, 50, 5000])
@pytest.mark.parametrize("deadline", [None, timedelta(seconds=30)])
async def test_an_outage_ends_with_one_verdict_per_fire(
    mode: CatchUpMode, missed: int, deadline: timedelta | None
) -> None:
    rig = Rig(make_spec(catch_up=CatchUp(mode), deadline=deadline))
    await rig.settle()

    rig.clock.advance(timedelta(minutes=missed, seconds=10))
    await rig.settle()

    verdicts = await rig.verdicts()
    assert sum(verdicts.values()) == missed
    assert (await rig.record()).watermark == (
        unix("10:00:00") + 60 * missed if missed else int(START.timestamp())
    )
    runs = verdicts.get(ENQUEUED, 0)
    all_runs = missed if deadline is None else min(missed, 1)
    assert (
        runs
        == {
            CatchUpMode.LATEST: min(missed, 1),
            CatchUpMode.ALL: all_runs,
            CatchUpMode.NONE: missed if missed <= 1 else 0,
        }[mode]
    )
    assert len(await rig.jobs()) == runs


async def test_a_fire_made_up_for_waits_in_the_queue_from_now_on() -> None:
    rig = Rig(make_spec("0 * * * *"))
    await rig.settle()

    await rig.outage_to("15:20:00")

    [job_id] = await rig.jobs(JobState.READY)
    record = await rig.memory.get_job(QUEUE, job_id)
    assert record is not None
    assert record.available_at == at("15:20:00")
    assert job_id == f"digest-{unix('15:00:00')}"
    assert rig.scheduler.counters.lateness.count == 0


async def test_a_long_outage_of_some_does_not_keep_others_waiting() -> None:
    """Bounded rounds: fires on time go before those to be made up for."""
    rig = Rig(*(make_spec(uid=f"many-{n}", catch_up=CatchUp(CatchUpMode.NONE)) for n in range(30)))
    await rig.settle()
    fresh = make_spec("5 18 * * *", uid="fresh", created=at("18:04:58"))
    rig.clock.advance(at("18:04:58") - rig.clock.now())
    rig.registry.replace([*rig.registry.specs.values(), fresh])
    await rig.leadership.tick()
    for _ in range(6):
        await rig.scheduler.tick()
    rig.clock.advance(timedelta(seconds=2))

    await rig.scheduler.tick()

    assert await rig.jobs() == [f"fresh-{unix('18:05:00')}"]
    open_fires = unix("18:04:00") - (await rig.record("many-29")).watermark
    assert open_fires > 0, "the outage was over before the fire: the test shows nothing"
    await rig.settle()
    assert (await rig.record("many-29")).watermark == unix("18:05:00")


async def test_a_lost_record_starts_at_the_last_fire_that_is_remembered() -> None:
    spec = make_spec(
        catch_up=CatchUp(CatchUpMode.ALL), created=at("09:00:00"), last_scheduled=at("09:57:00")
    )
    rig = Rig(spec)

    await rig.settle()

    assert await rig.jobs() == [f"digest-{unix(t)}" for t in ("09:58:00", "09:59:00", "10:00:00")]


async def test_a_record_lost_under_way_starts_at_what_was_decided() -> None:
    rig = Rig(make_spec(created=at("09:00:00"), catch_up=CatchUp(CatchUpMode.ALL)))
    await rig.run_to("10:02:30")
    before = await rig.jobs()
    term = rig.leadership.term(QUEUE)
    assert term is not None
    await rig.memory.put_crontasks(QUEUE, term, {})
    assert await rig.memory.cron_record(QUEUE, "digest") is None

    await rig.run_to("10:03:10")

    assert await rig.jobs() == [*before, f"digest-{unix('10:03:00')}"]


async def test_a_creation_in_the_future_does_not_silence_a_crontask() -> None:
    rig = Rig(make_spec(created=at("12:00:00")))

    await rig.run_to("10:01:00")

    assert len(await rig.jobs()) == 1


async def test_an_outage_is_told_in_one_line_per_crontask(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(make_spec())
    await rig.settle()

    with caplog.at_level(logging.INFO, logger="tidework.scheduler.queue_scheduler"):
        await rig.outage_to("19:00:00")

    assert events(caplog) == ["fires_late", "fired"]
    (warned,) = lines(caplog, "fires_late")
    assert "since 2026-01-05T10:01:00+00:00" in warned["message"]
    assert "Latest" in warned["message"]


async def test_a_clock_set_back_during_the_catching_up_fires_nothing_ahead_of_time() -> None:
    rig = Rig(make_spec(catch_up=CatchUp(CatchUpMode.NONE)))
    await rig.settle()
    rig.clock.jump(timedelta(hours=10))
    await rig.scheduler.tick()
    await rig.scheduler.tick()
    decided = (await rig.record()).watermark
    assert unix("10:01:00") < decided < unix("20:00:00"), "in the midst of it: else this is no test"

    rig.clock.jump(timedelta(hours=-10))
    await rig.settle()
    assert (await rig.record()).watermark == decided
    rig.clock.jump(timedelta(seconds=decided + 60) - (rig.clock.now() - from_unix(0)))
    await rig.settle()

    assert await rig.jobs() == [f"digest-{decided + 60}"]
