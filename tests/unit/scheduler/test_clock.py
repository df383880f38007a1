"""Clocks that jump, and clocks that disagree."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from tests.support.logs import events, lines
from tests.unit.scheduler.rig import START, Rig, make_spec, unix
from tidework.clock import ManualClock
from tidework.model.fire import Verdict
from tidework.scheduler.due import CatchUp, CatchUpMode
from tidework.testing.memory.broker import MemoryBroker

HOUR = timedelta(hours=1)


async def test_a_clock_set_back_fires_nothing_twice_and_goes_on() -> None:
    rig = Rig(make_spec())
    await rig.run_to("10:03:30")

    rig.clock.jump(-timedelta(minutes=2))
    await rig.run_to("10:05:10")

    assert await rig.jobs() == [f"digest-{unix(f'10:0{m}:00')}" for m in (1, 2, 3, 4, 5)]
    assert await rig.verdicts() == {Verdict.ENQUEUED: 5}


async def test_a_clock_set_forward_catches_up_as_after_an_outage_and_says_so_when_set_back() -> (
    None
):
    rig = Rig(make_spec(catch_up=CatchUp(CatchUpMode.LATEST)))
    await rig.run_to("10:00:30")
    rig.clock.jump(HOUR)
    await rig.settle()
    assert await rig.jobs() == [f"digest-{unix('11:00:00')}"]

    rig.clock.jump(-HOUR)
    await rig.run_to("10:10:00")
    status = await rig.scheduler.status("digest")

    assert len(await rig.jobs()) == 1
    assert status is not None
    assert "decided already, under a clock that was ahead" in status.reason
    assert int(status.next_fires[0].timestamp()) == unix("11:01:00")
    await rig.run_to("11:01:00")
    assert len(await rig.jobs()) == 2


async def test_a_clock_set_forward_while_waiting_is_noticed_within_a_bounded_wait() -> None:
    rig = Rig(make_spec("0 0 1 1 *"))
    await rig.settle()

    assert await rig.scheduler.tick() <= timedelta(seconds=1)


@pytest.mark.parametrize("ahead, word", [(7, "ahead of"), (-9, "behind")])
async def test_a_skew_against_redis_is_told_once_and_shown(
    ahead: int, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    redis_clock = ManualClock(START - timedelta(seconds=ahead))
    rig = Rig(make_spec(), memory=MemoryBroker(redis_clock))
    with caplog.at_level(logging.INFO, logger="tidework.scheduler.scheduler"):
        for _ in range(4):
            await rig.settle()
            for clock in (redis_clock, rig.clock):
                clock.advance(timedelta(seconds=31))
        redis_clock.jump(timedelta(seconds=ahead))
        await rig.settle()

    status = await rig.scheduler.status("digest")
    assert status is not None
    assert status.clock_skew == timedelta(0)
    assert [each for each in events(caplog) if "clock" in each] == ["clock_differs", "clock_agrees"]
    (line,) = lines(caplog, "clock_differs")
    assert f"{abs(ahead)}.0 s {word} that of Redis" in line["message"]


async def test_a_small_skew_is_shown_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    redis_clock = ManualClock(START - timedelta(seconds=2))
    rig = Rig(make_spec(), memory=MemoryBroker(redis_clock))

    await rig.settle()

    status = await rig.scheduler.status("digest")
    assert status is not None
    assert status.clock_skew == timedelta(seconds=2)
    assert not lines(caplog, "clock_differs")
