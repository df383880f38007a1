"""Lost async jobs as the supervisor sees them: a child for each, which the test speaks for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.worker.children import FakeChild, PoolBench
from tests.unit.worker.test_memory_guard import Gauge
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.worker import frames
from tidework.worker.held import HeldJob, Line, StopReason
from tidework.worker.memory.guard import MemoryGuard
from tidework.worker.memory.usage import MIB
from tidework.worker.places import loop_places, solitary
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.outcomes import LEFT


class Bench(PoolBench):
    """Places for async jobs; the loop has all of these, a solitary child one."""

    def __init__(self, places: int = 3) -> None:
        super().__init__(places, has_loop=True)
        self.start()
        (self.loop,) = [child for child in self.orders.children if child.places]

    @property
    def alone(self) -> list[FakeChild]:
        """Solitary children, in the order of their orders."""
        return [c for c in self.orders.children if c.places == 1]

    def lose(self, *names: str, timeout: float = 600.0) -> list[HeldJob]:
        """Jobs that were lost before come."""
        self.source.add(*names, losses=1, timeout=timeout, line=Line.SOLITARY)
        added = list(self.source.lines[Line.SOLITARY])[-len(names) :]
        self.pool.run()
        return added

    def put(self, *names: str) -> None:
        """Others come."""
        self.source.add(*names, line=Line.COMMON)
        self.pool.run()

    def waiting(self, line: Line = Line.SOLITARY) -> list[str]:
        return [job.id for job in self.source.lines[line]]

    def link(self, child: FakeChild) -> ChildLink:
        return next(link for link in self.pool.links() if link.key == child.key)

    def has_to_end(self, child: FakeChild) -> bool:
        child.jobs()
        return child.is_told_to_end()

    def run_in(self, child: FakeChild, *, ago: float = 0.0) -> None:
        """The child comes up and begins its job."""
        self.bring_up(child)
        assert child.take_permit() == 1
        self.begin(child, 1, ago=ago)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    found = Bench()
    yield found
    found.close()


async def test_each_lost_job_gets_a_child_of_its_own_and_others_share_the_loop(
    bench: Bench,
) -> None:
    bench.put("x")
    bench.lose("a", "b")

    assert [child.places for child in bench.alone] == [1, 1]
    assert [len(child.jobs()) for child in bench.alone] == [1, 1]
    assert [frame.number for frame in bench.loop.jobs()] == [1]
    assert bench.pool.busy == 3
    assert bench.loop_places.idle() == 0, "they take places of the loop"


async def test_a_child_ends_with_its_job(bench: Bench) -> None:
    bench.lose("a")
    (child,) = bench.alone
    bench.run_in(child)

    bench.finish(child, 1, 0.2)

    assert bench.source.settled == {"a": Outcome.complete()}
    assert bench.has_to_end(child)
    assert bench.loop_places.idle() == 3
    bench.pool.on_child_ended(child.pid, 0)
    assert bench.alone == [child], "it has no successor"
    bench.put("x", "y", "z")
    assert len(bench.loop.jobs()) == 3, "all places are the loop's again"


async def test_more_than_there_are_places_wait_and_follow(bench: Bench) -> None:
    bench.lose(*"abcd")
    assert bench.waiting() == ["d"]
    assert bench.loop_places.idle() == 0
    first = bench.alone[0]
    bench.run_in(first)

    bench.finish(first, 1, 0.2)

    assert len(bench.alone) == 3, "there are as many as there may be until it has ended"
    bench.pool.on_child_ended(first.pid, 0)
    assert len(bench.alone[3].jobs()) == 1
    assert bench.waiting() == []


async def test_lost_ones_come_before_others_that_wait(bench: Bench) -> None:
    bench.put(*"uvwx")
    bench.loop.jobs()
    bench.lose("a")
    assert bench.alone == []
    bench.begin(bench.loop, 1)

    bench.finish(bench.loop, 1, 0.2)

    assert len(bench.alone) == 1
    assert bench.waiting(Line.COMMON) == ["x"]
    assert bench.loop.jobs() == []


async def test_nothing_is_sent_ahead_into_a_loop_whose_places_solitary_children_have(
    bench: Bench,
) -> None:
    bench.loop_places.times.note("t", 0.001)
    bench.lose("a")

    bench.put(*"uvwxyz")

    assert len(bench.loop.jobs()) == 2, "the loop would start the others at once"


async def test_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solitary, "MOST", 2)
    bench = Bench(10)
    try:
        bench.lose(*"abcd")

        assert len(bench.alone) == 2
        assert bench.loop_places.idle() == 6, "those that wait have a claim on a place"
        bench.put("x")
        assert len(bench.loop.jobs()) == 1, "and keep nobody else from one"
    finally:
        bench.close()


async def test_a_death_is_a_loss_for_that_job_alone(bench: Bench) -> None:
    bench.put("x")
    bench.begin(bench.loop, 1)
    bench.lose("a", "b")
    one, two = bench.alone
    bench.run_in(one)
    bench.run_in(two)

    bench.pool.on_child_ended(one.pid, -9)

    assert {name: found.kind for name, found in bench.source.settled.items()} == {
        "a": OutcomeKind.LOSS
    }
    assert bench.loop_places.slot.link is bench.link(bench.loop)
    assert len(bench.alone) == 2


async def test_a_death_before_the_job_began_is_no_loss_and_the_next_child_waits_a_little(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.lose("a")
    (child,) = bench.alone
    bench.pool.on_child_started(child.key, child.pid, None)

    bench.pool.on_child_ended(child.pid, -9)

    assert bench.source.settled == {}
    assert bench.waiting() == ["a"]
    bench.pool.run()
    assert bench.alone == [child], "not again and again without a pause"
    monkeypatch.setattr(bench.loop_places.solitary, "_paused_until", 0.0)
    bench.pool.run()
    assert len(bench.alone[1].jobs()) == 1


async def test_no_process_to_be_had_is_no_loss(bench: Bench) -> None:
    bench.lose("a")
    (child,) = bench.alone

    bench.pool.on_child_refused(child.key, "no more processes")

    assert bench.waiting() == ["a"]
    assert bench.source.settled == {}
    assert bench.loop_places.idle() == 2


async def test_without_a_template_they_wait_for_the_next_one(bench: Bench) -> None:
    bench.orders.away = True
    bench.lose("a")
    assert bench.waiting() == ["a"]

    bench.orders.away = False
    bench.pool.open()

    assert len(bench.alone[0].jobs()) == 1


async def test_it_dies_with_its_template(bench: Bench) -> None:
    bench.lose("a", "b")
    one, two = bench.alone
    bench.run_in(one)

    bench.pool.on_template_ended({child.key for child in bench.orders.children})
    for child in (one, two):
        if any(link.key == child.key for link in bench.pool.links()):
            bench.pool.on_child_ended(child.pid, -9)

    assert [bench.source.settled[name].kind for name in "a"] == [OutcomeKind.LOSS]
    assert "b" in bench.source.taken_back


async def test_a_drain_takes_back_what_has_not_begun(bench: Bench) -> None:
    bench.lose("a", "b")
    one, two = bench.alone
    bench.run_in(one)

    bench.pool.take_back_unstarted()

    assert bench.source.taken_back == ["b"]
    assert bench.has_to_end(two)
    with pytest.raises(BlockingIOError):
        two.take_permit()
    bench.finish(one, 1, 0.2)
    assert bench.source.settled == {"a": Outcome.complete()}


async def test_a_job_that_has_not_begun_can_be_had_back(bench: Bench) -> None:
    (job,) = bench.lose("a")
    (child,) = bench.alone

    assert bench.pool.stop_job(job, StopReason.CANCELLED)

    assert bench.has_to_end(child)
    bench.pool.on_child_started(child.key, child.pid, None)
    bench.pool.on_child_ended(child.pid, 0)
    assert bench.source.settled == {}
    assert bench.waiting() == []


async def test_closing_kills_it_and_gives_its_job_back(bench: Bench) -> None:
    bench.lose("a", "b")
    one, two = bench.alone
    bench.run_in(one)
    bench.pool.take_back_unstarted()

    bench.pool.close()
    bench.pool.on_child_ended(one.pid, -9)

    assert bench.source.settled == {"a": LEFT}
    assert bench.has_to_end(two)


async def test_a_job_past_its_timeout_is_cancelled_and_then_killed(bench: Bench) -> None:
    (late,) = bench.lose("a", timeout=5)
    (child,) = bench.alone
    bench.run_in(child, ago=6)
    child.jobs()

    bench.look()
    assert child.orders() == [frames.Stop(1)]
    assert late.stop_reason is StopReason.TIMEOUT
    late.stopped_at -= loop_places.STOP_PATIENCE
    bench.link(child).heard_at = late.stopped_at - 1
    bench.look()

    assert bench.pool.unreaped_since() is not None
    bench.pool.on_child_ended(child.pid, -9)
    assert JobError.decode(bench.source.settled["a"].detail).cause == "timeout"
    assert bench.pool.unreaped_since() is None


async def test_a_slow_start_is_not_held_against_the_job(bench: Bench) -> None:
    (job,) = bench.lose("a")
    (child,) = bench.alone
    job.sent_at -= 60  # an interpreter that imports the application anew
    bench.pool.on_child_started(child.key, child.pid, None)
    bench.look()

    bench.bring_up(child)
    bench.look()

    assert bench.source.taken_back == []
    assert bench.pool.unreaped_since() is None
    assert child.take_permit() == 1


async def test_one_that_comes_up_and_does_not_begin_is_replaced(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.lose("a")
    (child,) = bench.alone
    bench.bring_up(child)
    assert child.take_permit() == 1
    monkeypatch.setattr(loop_places, "START_PATIENCE", 0.0)

    bench.look()
    bench.pool.on_child_ended(child.pid, -9)

    assert bench.source.settled == {}
    assert len(bench.alone[1].jobs()) == 1


async def test_a_new_version_begins_what_the_former_has_not(bench: Bench) -> None:
    bench.lose("a", "b")
    one, two = bench.alone
    bench.run_in(one)

    bench.pool.renew()
    bench.pool.run()

    assert bench.source.taken_back == ["b"]
    assert bench.has_to_end(two)
    assert not bench.has_to_end(one)
    assert len(bench.alone[2].jobs()) == 1


async def test_the_end_of_the_loop_is_not_that_of_a_solitary_child(bench: Bench) -> None:
    bench.lose("a")
    (child,) = bench.alone
    bench.run_in(child)
    bench.pool.on_child_ended(bench.loop.pid, -9)
    successor = bench.orders.children[-1]
    assert successor.places == 3

    bench.pool.on_child_ended(child.pid, -9)

    assert bench.orders.children[-1] is successor, "only the loop is replaced"
    assert bench.source.settled["a"].kind is OutcomeKind.LOSS


async def test_where_memory_is_short_one_runs_at_a_time(bench: Bench) -> None:
    gauge = Gauge()
    guard = MemoryGuard(bench.pool, gauge, 0.9, bench.clock)
    gauge.mib = gauge.limit // MIB * 8 // 10
    await guard._tick()

    bench.lose("a", "b")

    assert len(bench.alone) == 1
    assert bench.waiting() == ["b"]
    gauge.mib = 100
    await guard._tick()
    assert len(bench.alone) == 2
    assert bench.waiting() == []


async def test_no_more_start_at_once_than_fit_into_memory(bench: Bench) -> None:
    bench.loop_places.solitary.note_memory(2 * solitary.CHILD_BYTES)

    bench.lose("a", "b", "c")

    assert len(bench.alone) == 2


async def test_they_are_ordered_once_the_template_has_caught_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidework.worker.places.nursery.ORDERS_AT_ONCE", 1)
    bench.lose("a", "b")
    (child,) = bench.alone

    bench.pool.on_child_started(child.key, child.pid, None)

    assert len(bench.alone) == 2
