"""Slots when another version of the application takes over: whose child is replaced, and when."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.worker.children import FakeChild, PoolBench
from tests.unit.worker.jobs import Source
from tidework.model.outcome import OutcomeKind
from tidework.model.task import TaskSpec
from tidework.worker.held import Line
from tidework.worker.queue.facts import WorkerFacts
from tidework.worker.queue.readmission import readmit


@pytest.fixture
async def bench() -> AsyncIterator[PoolBench]:
    found = PoolBench(2)
    found.start()
    yield found
    found.close()


@pytest.fixture
async def loop_bench() -> AsyncIterator[PoolBench]:
    found = PoolBench(3, has_loop=True)
    found.start()
    yield found
    found.close()


def newest(bench: PoolBench) -> FakeChild:
    return bench.orders.children[-1]


def keys(bench: PoolBench) -> list[int]:
    return [slot.link.key if slot.link else 0 for slot in bench.pool.slots]


async def test_free_children_are_replaced_at_once(bench: PoolBench) -> None:
    before = list(bench.orders.children)

    bench.pool.renew()

    assert all(child.is_told_to_end() for child in before)
    assert keys(bench) == [3, 4]


async def test_a_running_job_ends_in_its_child_and_no_other_begins_there(bench: PoolBench) -> None:
    bench.make_quick()
    bench.source.add("a", "b", "c")
    bench.pool.run()
    busy = list(bench.orders.children)
    for child in busy:
        bench.begin(child, 1)
    ahead = [frame.number for child in busy for frame in child.jobs()]
    assert sorted(ahead) == [1, 1, 2]

    bench.pool.renew()
    bench.pool.run()

    assert bench.source.taken_back == ["c"]
    assert not any(child.is_told_to_end() for child in busy)
    bench.finish(busy[0], 1)
    assert busy[0].is_told_to_end()
    assert busy[0].jobs() == []
    bench.bring_up(newest(bench))
    assert [frame.number for frame in newest(bench).jobs()] == [1], "the new one has c"
    bench.pool.on_child_ended(busy[1].pid, -11)
    assert bench.source.settled["a"].kind is OutcomeKind.LOSS, "deaths of old ones count as ever"


async def test_a_child_that_is_not_ready_yet_is_replaced_too(bench: PoolBench) -> None:
    bench.pool.renew()
    started = newest(bench)
    bench.pool.on_child_started(started.key, started.pid, None)

    bench.pool.renew()

    assert started.is_told_to_end()
    assert started.key not in keys(bench)


async def test_one_that_was_only_ordered_is_replaced_once_it_is_there(bench: PoolBench) -> None:
    bench.pool.renew()
    ordered = newest(bench)

    bench.pool.renew()
    assert ordered.key in keys(bench)
    bench.bring_up(ordered)

    assert ordered.is_told_to_end()
    assert ordered.key not in keys(bench)


async def test_the_loop_gets_no_more_jobs_and_ends_with_its_last_one(
    loop_bench: PoolBench,
) -> None:
    bench = loop_bench
    loop = newest(bench)
    bench.source.add("a", "b")
    bench.pool.run()
    bench.begin(loop, 1)
    loop.take_permit()
    bench.begin(loop, 2)
    loop.jobs()

    bench.pool.renew()
    bench.source.add("c")
    bench.pool.run()

    assert loop.jobs() == []
    assert bench.loop_places.idle() == 0
    successor = newest(bench)
    assert successor is not loop
    bench.bring_up(successor)
    assert [frame.number for frame in successor.jobs()] == [1]
    bench.finish(loop, 1)
    assert not loop.is_told_to_end()
    bench.finish(loop, 2)
    assert loop.is_told_to_end()


async def test_only_the_children_of_a_template_die_with_it(bench: PoolBench) -> None:
    bench.source.add("a")
    bench.pool.run()
    busy = next(child for child in bench.orders.children if child.jobs())
    bench.begin(busy, 1)
    bench.pool.renew()
    new = {child.key for child in bench.orders.children[2:]}

    bench.pool.on_template_ended(new)

    assert bench.source.settled == {}
    assert busy.key in keys(bench)
    bench.pool.on_template_ended({busy.key})
    assert bench.source.settled["a"].kind is OutcomeKind.LOSS


async def test_nothing_starts_when_the_pool_was_closed(bench: PoolBench) -> None:
    bench.pool.close()
    before = len(bench.orders.children)

    bench.pool.renew()

    assert len(bench.orders.children) == before


def test_waiting_jobs_are_looked_at_again() -> None:
    source = Source()
    source.add("gone", task="gone")
    source.add("sync", task="sync")
    source.add("stays", task="stays", timeout=5.0)
    source.add("lost", task="stays", losses=1, line=Line.SOLITARY)
    specs = {name: TaskSpec(name, "q", timeout=None) for name in ("stays", "sync")}
    facts = WorkerFacts("w.1", specs, 600.0, 600.0, loop_tasks={"stays"})

    readmit(source, facts.admit)

    kinds = {name: outcome.kind for name, outcome in source.settled.items()}
    assert kinds == {"gone": OutcomeKind.RELEASE, "sync": OutcomeKind.BURY}
    assert [[job.id for job in line] for line in source.lines] == [["stays"], ["lost"]]
    jobs = [job for line in source.lines for job in line]
    assert all(job.spec is specs["stays"] for job in jobs)
    assert jobs[0].timeout == 5.0, "bounded as it was"
