"""The one loop: when it ticks."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tidework import loop as loop_module
from tidework.loop import LONG, Loop, _end_of, shortened


@pytest.fixture(autouse=True)
def fresh_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module._Grid, "start", None)


def test_short_waits_last_as_long_as_asked() -> None:
    assert _end_of(100.25, LONG - 0.01) == 100.25 + LONG - 0.01
    assert _end_of(100.25, -1) == 100.25


def test_long_waits_of_a_process_end_together() -> None:
    first = _end_of(100.25, 4)
    assert first == 104.25
    assert {_end_of(100.25 + late, 4) for late in (0.0, 0.3, 0.999)} == {first}
    assert _end_of(104.25, 4) == 108.25
    assert _end_of(104.3, 10) == 114.25


@pytest.mark.parametrize(("wait", "shorter"), [(2, 1), (3.9, 1), (4, 2), (10, 2)])
def test_a_long_wait_is_never_longer_and_little_shorter(wait: float, shorter: float) -> None:
    _end_of(100.25, 4)
    for tenths in range(200):
        now = 100.25 + tenths / 10
        assert now + wait >= _end_of(now, wait) > now + wait - shorter


def test_longer_waits_that_began_a_second_apart_end_together() -> None:
    assert _end_of(100.25, 4) == _end_of(101.3, 4) == 104.25


def test_a_clock_of_another_life_is_no_trouble() -> None:
    _end_of(1_000_000.0, 4)
    assert _end_of(5.0, 4) == 9.0


async def test_what_waits_elsewhere_ends_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    now = loop.time()
    assert shortened(timedelta(seconds=1)).total_seconds() == pytest.approx(1)
    first = shortened(timedelta(seconds=4)).total_seconds()
    assert first == pytest.approx(4, abs=1e-3)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda: now + 0.2)
        later = shortened(timedelta(seconds=4)).total_seconds()
    assert 2 <= later <= 3.8 + 1e-3


async def test_a_nudge_ends_a_long_wait() -> None:
    ticks = 0

    async def tick() -> timedelta:
        nonlocal ticks
        ticks += 1
        if ticks == 3:
            found.stop()
        return timedelta(hours=1)

    found = Loop("test", tick)
    running = asyncio.create_task(found.run())
    for count in (1, 2):
        async with asyncio.timeout(10):
            while ticks < count:
                await asyncio.sleep(0)
        found.nudge()
    async with asyncio.timeout(10):
        await running
    assert ticks == 3
