"""Dispatch: ahead of their turn, alone after a loss, taken back, in turns."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.worker.children import Make, PoolBench
from tests.unit.worker.jobs import Source
from tidework.worker.held import StopReason
from tidework.worker.places.places import AHEAD_IN_CHILD


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made = []

    def build(slots: int = 1, *, jobs: int = 1000, memory: int = 1 << 30) -> PoolBench:
        made.append(PoolBench(slots, jobs=jobs, memory=memory))
        made[-1].start()
        return made[-1]

    yield build
    for bench in made:
        bench.close()


def names(source: Source) -> list[str]:
    return [job.id for job in source.waiting]


async def test_nothing_goes_ahead_before_the_task_is_known_to_be_short(make: Make) -> None:
    bench = make()
    bench.source.add("a", "b")

    bench.slot_places.run()

    assert names(bench.source) == ["b"]


async def test_short_jobs_go_ahead_up_to_a_bound(make: Make) -> None:
    bench = make()
    bench.make_quick()
    bench.source.add(*"abcdefghijklmn")

    bench.slot_places.run()

    child = bench.orders.children[0]
    assert [frame.ahead for frame in child.jobs()] == [False] + [True] * AHEAD_IN_CHILD
    assert names(bench.source) == list("jklmn")
    for number in range(1, 5):
        bench.begin(child, number)
        bench.finish(child, number)
    assert len(child.jobs()) == 4, "filled up again when half is empty"


async def test_idle_slots_come_before_pipes(make: Make) -> None:
    bench = make(3)
    bench.make_quick()
    bench.source.add(*"abc")

    bench.slot_places.run()

    assert [len(child.jobs()) for child in bench.orders.children] == [1, 1, 1]


async def test_a_job_that_was_lost_before_runs_alone(make: Make) -> None:
    bench = make()
    bench.make_quick()
    bench.source.add("lost", losses=1)
    bench.source.add("innocent")
    bench.slot_places.run()
    assert names(bench.source) == ["innocent"], "nobody behind it"
    child = bench.orders.children[0]
    bench.begin(child, 1)
    bench.finish(child, 1)
    bench.source.add("lost again", losses=1)

    bench.slot_places.run()

    assert [frame.number for frame in child.jobs()] == [1, 2]
    assert names(bench.source) == ["lost again"], "and it behind nobody"


async def test_a_child_killed_loses_the_started_one_alone(make: Make) -> None:
    bench = make()
    bench.make_quick()
    bench.source.add("a", "b", "c")
    bench.slot_places.run()
    child = bench.orders.children[0]
    bench.begin(child, 1)

    bench.pool.on_child_ended(child.pid, -9)

    assert list(bench.source.settled) == ["a"]
    assert bench.source.taken_back == ["b", "c"]
    assert names(bench.source) == ["b", "c"], "in their order"


async def test_jobs_behind_one_that_runs_long_are_taken_back(make: Make) -> None:
    bench = make()
    bench.make_quick()
    bench.source.add("a", "b", "c")
    bench.slot_places.run()
    child = bench.orders.children[0]
    bench.begin(child, 1)
    bench.look()
    assert bench.source.taken_back == []
    link = bench.pool.slots[0].link
    assert link is not None
    link.first.started_at = bench.clock.monotonic() - 1

    bench.look()

    assert bench.source.taken_back == ["b", "c"]
    with pytest.raises(BlockingIOError):
        child.take_permit()
    assert names(bench.source) == ["b", "c"], "not sent behind it again"
    bench.finish(child, 1)
    assert [frame.number for frame in child.jobs()] == [1, 2, 3, 4, 5]


async def test_a_job_whose_permit_the_child_took_is_not_taken_back(make: Make) -> None:
    bench = make()
    bench.make_quick()
    bench.source.add("a", "b", "c")
    bench.slot_places.run()
    child = bench.orders.children[0]
    bench.begin(child, 1)
    assert child.take_permit() == 2

    bench.pool.take_back_unstarted()

    assert bench.source.taken_back == ["c"]


async def test_stopping_a_job_that_has_not_started_gives_it_to_the_caller(make: Make) -> None:
    bench = make()
    bench.make_quick()
    bench.source.add("a", "b", "c")
    jobs = list(bench.source.waiting)
    bench.slot_places.run()
    bench.begin(bench.orders.children[0], 1)

    assert bench.pool.stop_job(jobs[1], StopReason.CANCELLED)

    assert bench.pool.unreaped_since() is None
    assert bench.source.taken_back == ["c"]
    assert names(bench.source) == [], "the other one is on its way again"


async def test_no_more_jobs_than_the_child_may_run_go_ahead(make: Make) -> None:
    bench = make(jobs=2)
    bench.make_quick()
    bench.source.add("a", "b", "c")

    bench.slot_places.run()

    assert len(bench.orders.children[0].jobs()) == 2


async def test_sources_take_turns(make: Make) -> None:
    bench = make(1)
    other = Source(1)
    bench.pool.add_source(other)
    bench.source.add("a1", "a2")
    other.add("b1", "b2")
    child = bench.orders.children[0]

    bench.slot_places.run()
    for number in (1, 2, 3, 4):
        bench.begin(child, number)
        bench.finish(child, number)

    assert [frame.queue for frame in child.jobs()] == [0, 1, 0, 1]
    assert list(bench.source.settled) == ["a1", "a2"]
    assert list(other.settled) == ["b1", "b2"]


async def test_sources_hear_of_a_free_slot(make: Make) -> None:
    bench = make()
    before = bench.source.offers
    bench.source.add("a")
    bench.slot_places.run()
    child = bench.orders.children[0]

    bench.begin(child, 1)
    assert bench.source.offers == before
    bench.finish(child, 1)

    assert bench.source.offers == before + 1
