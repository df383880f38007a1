"""The memory guard: whom it ends, when, and what that is for the jobs in it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.logs import lines
from tests.unit.worker.children import FakeChild, PoolBench
from tidework.model.outcome import JobError, OutcomeKind
from tidework.worker.held import StopReason
from tidework.worker.memory import guard as memory_guard
from tidework.worker.memory import watch as memory_watch
from tidework.worker.memory.guard import MemoryGuard
from tidework.worker.memory.usage import MIB
from tidework.worker.memory.watch import MemoryWatch
from tidework.worker.places.child_link import ChildLink

LIMIT = 1000 * MIB


class Gauge:
    """Says what the test says."""

    limit = LIMIT

    def __init__(self) -> None:
        self.mib: int | None = 0

    def used(self, exact_from: int) -> int | None:
        return None if self.mib is None else self.mib * MIB


class Bench(PoolBench):
    """Slots with a job each, whose sizes the test tells."""

    def __init__(self, slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(slots)
        self.start()
        self.sizes: dict[int, int] = {}
        self.gauge = Gauge()
        self.guard = MemoryGuard(self.pool, self.gauge, 0.9, self.clock)
        monkeypatch.setattr(memory_guard, "family_bytes", lambda pid: self.sizes[pid] * MIB)
        self.source.add(*(f"job{n}" for n in range(slots)))
        self.slot_places.run()
        for child in self.orders.children:
            for frame in child.jobs():
                self.begin(child, frame.number)

    def link(self, child: FakeChild) -> ChildLink:
        return next(link for link in self.pool.links() if link.key == child.key)

    async def measure(self, used: int, *sizes: int) -> float:
        """Returns the seconds until the next look."""
        self.gauge.mib = used
        for child, size in zip(self.orders.children, sizes, strict=False):
            self.sizes[child.pid] = size
        return (await self.guard._tick()).total_seconds()

    def stop_reasons(self) -> list[StopReason | None]:
        links = [self.link(child) for child in self.orders.children]
        return [link.killed_for[0] if link.killed_for else None for link in links]

    def bury(self, child: FakeChild) -> None:
        self.pool.on_child_ended(child.pid, -9)


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    made = Bench(2, monkeypatch)
    yield made
    made.close()


async def test_nobody_is_ended_below_the_bound(bench: Bench) -> None:
    await bench.measure(899, 700, 100)

    assert bench.stop_reasons() == [None, None]


async def test_the_largest_one_that_grew_is_a_loss_with_the_cause(bench: Bench) -> None:
    await bench.measure(750, 500, 200)
    await bench.measure(950, 700, 200)
    one, _ = bench.orders.children
    assert bench.stop_reasons() == [StopReason.MEMORY, None]

    bench.bury(one)

    (outcome,) = bench.source.settled.values()
    assert outcome.kind is OutcomeKind.LOSS
    error = JobError.decode(outcome.detail)
    assert (error.type, error.cause) == ("MemoryExceeded", "memory")
    assert "it held 700 MiB when 950 of 1000 MiB were in use" in error.message


async def test_one_that_was_only_large_is_given_back_uncounted(bench: Bench) -> None:
    await bench.measure(750, 500, 100)
    await bench.measure(950, 500, 300)
    one, _ = bench.orders.children
    assert bench.stop_reasons() == [StopReason.ROOM, None]

    bench.bury(one)

    (outcome,) = bench.source.settled.values()
    assert outcome.kind is OutcomeKind.RELEASE
    assert outcome.delay.total_seconds() > 0
    assert "had to make room" in outcome.cause


async def test_growth_between_two_looks_is_seen_by_what_the_watch_saw(bench: Bench) -> None:
    one, _ = bench.orders.children
    bench.link(one).pss = 500 * MIB

    await bench.measure(950, 500, 300)

    assert bench.stop_reasons() == [StopReason.ROOM, None]


async def test_growth_of_long_ago_does_not_count(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_guard._Growth, "WINDOW", 0.0)
    for used, sizes in ((750, (100, 200)), (860, (500, 200)), (860, (500, 200))):
        await bench.measure(used, *sizes)

    await bench.measure(950, 500, 290)

    assert bench.stop_reasons() == [StopReason.ROOM, None]


async def test_one_at_a_time(bench: Bench) -> None:
    await bench.measure(950, 700, 200)
    await bench.measure(950, 700, 200)
    assert bench.stop_reasons() == [StopReason.MEMORY, None]

    bench.bury(bench.orders.children[0])
    bench.bring_up(bench.orders.children[2])
    await bench.measure(950, 0, 600, 10)

    assert bench.link(bench.orders.children[1]).killed_for is not None


async def test_nobody_is_ended_for_what_others_hold(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Files in memory that a job left behind, another container of the pod."""
    await bench.measure(750, 10, 12)
    for _ in range(2):
        await bench.measure(950, 11, 12)

    assert bench.stop_reasons() == [None, None]
    (told,) = lines(caplog, "memory_short")
    assert "950 of 1000 MiB are in use" in told["message"]
    assert "hold 23 MiB" in told["message"]

    await bench.measure(950, 11, 60)
    assert bench.stop_reasons() == [None, StopReason.MEMORY], "its end helps"


async def test_a_child_that_has_done_nothing_is_spared(bench: Bench) -> None:
    for child in bench.orders.children:
        bench.link(child).jobs.clear()

    await bench.measure(950, 700, 200)

    assert bench.stop_reasons() == [None, None]


async def test_the_less_is_free_the_sooner_the_next_look(bench: Bench) -> None:
    waits = [await bench.measure(used, 100, 100) for used in (0, 600, 899)]

    assert waits == sorted(waits, reverse=True)
    assert waits[0] > 0.5
    assert waits[2] < 0.5


async def test_a_gauge_that_tells_nothing_ends_nobody(bench: Bench) -> None:
    await bench.measure(750, 500, 200)
    bench.gauge.mib = None

    await bench.guard._tick()

    assert bench.stop_reasons() == [None, None]


async def test_it_rests_while_no_job_runs_and_is_woken_by_the_next(bench: Bench) -> None:
    assert await bench.measure(100) <= 1.0
    for child in bench.orders.children:
        bench.finish(child, 1)
    assert await bench.measure(100) == 4.0
    assert await bench.measure(750, 400, 300) <= 1.0, "not where memory is scarce already"
    await bench.measure(100)
    woken = []
    bench.guard.loop.nudge = lambda: woken.append(True)  # type: ignore[method-assign]

    bench.pool.run()
    assert not woken
    bench.source.add("next")
    bench.pool.run()

    assert woken
    assert await bench.measure(100) <= 1.0


async def test_the_watch_looks_a_second_after_the_first_job(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def look(pid: int) -> int:
        looked.append(pid)
        return 7 * MIB

    monkeypatch.setattr(memory_watch, "pss_bytes", look)
    watch = MemoryWatch(bench.pool, bench.clock)
    await watch._tick()
    assert len(looked) == 2
    for child in bench.orders.children:
        bench.finish(child, 1)
    await watch._tick()
    assert (await watch._tick()).total_seconds() == memory_watch.AT_REST
    looked.clear()
    bench.source.add("next")
    bench.pool.run()

    assert (await watch._tick()).total_seconds() == memory_watch.EVERY
    assert looked == [], "there is nothing to be seen yet"
    assert (await watch._tick()).total_seconds() == memory_watch.EVERY
    assert len(looked) == 1
