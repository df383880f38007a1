"""Slots: starts, ends, stops and replacement, with children that a test speaks for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.worker.children import FakeChild, Make, PoolBench
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.worker import frames
from tidework.worker.held import StopReason
from tidework.worker.places import nursery, overdue, slot_places
from tidework.worker.places.outcomes import LEFT
from tidework.worker.places.slot import Slot


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


def current(bench: PoolBench) -> FakeChild:
    return bench.orders.children[-1]


async def test_each_slot_runs_one_job(make: Make) -> None:
    bench = make(2)
    bench.source.add("a", "b", "c")

    bench.slot_places.run()

    one, two = bench.orders.children
    assert [len(one.jobs()), len(two.jobs())] == [1, 1]
    assert [job.id for job in bench.source.waiting] == ["c"]
    assert bench.pool.busy == 2


async def test_an_end_is_settled_and_the_slot_goes_on(make: Make) -> None:
    bench = make()
    bench.source.add("a", "b")
    bench.slot_places.run()
    child = current(bench)

    bench.begin(child, 1)
    bench.finish(child, 1)

    assert bench.source.settled == {"a": Outcome.complete()}
    assert [frame.number for frame in child.jobs()] == [1, 2]


async def test_a_child_that_died_with_a_started_job_is_a_loss(make: Make) -> None:
    bench = make()
    bench.source.add("a")
    bench.slot_places.run()
    child = current(bench)
    bench.begin(child, 1)

    bench.pool.on_child_ended(child.pid, -11)

    outcome = bench.source.settled["a"]
    assert outcome.kind is OutcomeKind.LOSS
    assert JobError.decode(outcome.detail).cause == "signal 11 (SIGSEGV)"
    assert len(bench.orders.children) == 2, "the slot has another child"


async def test_a_job_that_had_not_started_is_nobodys_loss(make: Make) -> None:
    bench = make()
    bench.source.add("a")
    bench.slot_places.run()

    bench.pool.on_child_ended(current(bench).pid, 3)

    assert bench.source.settled == {}
    assert bench.source.taken_back == ["a"]
    bench.bring_up(current(bench))
    assert [frame.number for frame in current(bench).jobs()] == [1]


async def test_what_a_child_said_before_it_died_counts(make: Make) -> None:
    bench = make()
    bench.source.add("a")
    bench.slot_places.run()
    child = current(bench)
    at = bench.clock.monotonic()
    child.say(frames.started_frame(1, at), frames.ended_frame(1, Outcome.complete(b"7"), 0.1))

    bench.pool.on_child_ended(child.pid, 1)

    assert bench.source.settled == {"a": Outcome.complete(b"7")}


async def test_a_job_past_its_timeout_is_a_failed_attempt(make: Make) -> None:
    bench = make()
    bench.source.add("a", timeout=5)
    bench.slot_places.run()
    child = current(bench)
    bench.begin(child, 1, ago=4)
    bench.look()
    assert bench.pool.unreaped_since() is None

    link = bench.pool.slots[0].link
    assert link is not None
    link.first.started_at = bench.clock.monotonic() - 6
    bench.look()
    assert bench.pool.unreaped_since() is not None
    bench.pool.on_child_ended(child.pid, -9)

    outcome = bench.source.settled["a"]
    assert outcome.kind is OutcomeKind.RETRY
    assert JobError.decode(outcome.detail).cause == "timeout"
    assert bench.pool.unreaped_since() is None


async def test_an_end_that_was_said_in_time_beats_the_timeout(make: Make) -> None:
    bench = make()
    bench.source.add("a", timeout=5)
    bench.slot_places.run()
    child = current(bench)
    bench.begin(child, 1, ago=6)
    child.say(frames.ended_frame(1, Outcome.complete(), 4.9))

    bench.look()

    assert bench.source.settled == {"a": Outcome.complete()}
    assert bench.pool.unreaped_since() is None


@pytest.mark.parametrize(
    ("stop_reason", "settled", "forgotten"),
    [
        (StopReason.WORKER_LEAVES, {"a": LEFT}, []),
        (StopReason.LEASE_LOST, {}, ["a"]),
    ],
)
async def test_what_becomes_of_a_stopped_job(
    make: Make, stop_reason: StopReason, settled: dict[str, Outcome], forgotten: list[str]
) -> None:
    bench = make()
    bench.source.add("a")
    job = bench.source.waiting[0]
    bench.slot_places.run()
    child = current(bench)
    bench.begin(child, 1)

    assert not bench.pool.stop_job(job, stop_reason)
    assert bench.source.settled == {}, "not before the child is gone"
    bench.pool.on_child_ended(child.pid, -9)

    assert bench.source.settled == settled
    assert bench.source.forgotten == forgotten


async def test_a_child_is_replaced_after_its_jobs_between_two_of_them(make: Make) -> None:
    bench = make(jobs=2)
    bench.source.add("a", "b", "c")
    bench.slot_places.run()
    child = current(bench)
    for number in (1, 2):
        bench.begin(child, number)
        bench.finish(child, number)

    assert [frame.number for frame in child.jobs()] == [1, 2]
    assert child.is_told_to_end()
    assert [job.id for job in bench.source.waiting] == ["c"]
    bench.bring_up(current(bench))
    assert [frame.number for frame in current(bench).jobs()] == [1]
    bench.pool.on_child_ended(child.pid, 0)
    assert set(bench.source.settled) == {"a", "b"}


async def test_a_child_is_replaced_when_it_has_grown(make: Make) -> None:
    bench = make(memory=100 << 20)
    bench.source.add("a")
    bench.slot_places.run()
    child = current(bench)
    bench.begin(child, 1)
    link = bench.pool.slots[0].link
    assert link is not None
    link.pss = 101 << 20
    bench.pool.recycle_idle()
    assert not child.is_told_to_end() or child.jobs(), "not while a job runs"

    bench.finish(child, 1)

    assert current(bench) is not child


async def test_an_idle_child_that_has_grown_is_replaced(make: Make) -> None:
    bench = make(memory=100 << 20)
    bench.source.add("a")
    bench.slot_places.run()
    child = current(bench)
    bench.begin(child, 1)
    bench.finish(child, 1)
    link = bench.pool.slots[0].link
    assert link is not None
    link.pss = 101 << 20

    bench.pool.recycle_idle()

    assert current(bench) is not child


async def test_nonsense_from_a_child_ends_it(make: Make) -> None:
    bench = make()
    bench.source.add("a")
    bench.slot_places.run()
    child = current(bench)
    bench.begin(child, 1)

    child.say(b"\x00\x00\x00\x01?")
    bench.read()
    assert bench.pool.unreaped_since() is not None
    bench.pool.on_child_ended(child.pid, -9)

    assert bench.source.settled["a"].kind is OutcomeKind.LOSS


async def test_a_report_out_of_turn_is_nonsense(make: Make) -> None:
    bench = make()
    bench.source.add("a")
    bench.slot_places.run()

    bench.finish(current(bench), 5)

    assert bench.pool.unreaped_since() is not None
    assert bench.source.settled == {}


async def test_a_child_killed_before_it_began_is_killed_when_it_appears(make: Make) -> None:
    bench = make(0)
    bench.pool.slots.append(Slot(0))
    bench.pool.open()

    bench.pool.close()

    assert current(bench).is_told_to_end()


async def test_no_child_while_the_template_is_away(make: Make) -> None:
    bench = make()
    bench.source.add("a")
    bench.slot_places.run()
    bench.begin(current(bench), 1)
    bench.orders.away = True

    bench.pool.on_template_ended({current(bench).key})

    assert bench.source.settled["a"].kind is OutcomeKind.LOSS
    assert bench.pool.slots[0].link is None
    bench.orders.away = False
    bench.pool.open()
    assert bench.pool.slots[0].link is not None


async def test_a_template_that_does_not_answer_is_killed(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make()
    bench.pool.on_child_ended(current(bench).pid, -9)
    bench.look()
    assert bench.orders.killed == 0

    monkeypatch.setattr(overdue, "START_PATIENCE", 0.0)
    bench.look()

    assert bench.orders.killed == 1


async def test_a_child_that_does_not_start_its_job_is_replaced(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make()
    bench.source.add("a")
    bench.slot_places.run()
    bench.look()
    assert bench.pool.unreaped_since() is None
    monkeypatch.setattr(slot_places, "START_PATIENCE", 0.0)

    bench.look()

    assert bench.pool.unreaped_since() is not None
    bench.pool.on_child_ended(current(bench).pid, -9)
    assert bench.source.settled == {}
    assert bench.source.taken_back == ["a"]


async def test_a_child_that_does_not_get_ready_is_replaced(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make()
    bench.pool.on_child_ended(current(bench).pid, -9)
    child = current(bench)
    bench.pool.on_child_started(child.key, child.pid, None)
    bench.look()
    assert bench.pool.unreaped_since() is None
    monkeypatch.setattr(overdue, "READY_PATIENCE", 0.0)

    bench.look()

    assert bench.pool.unreaped_since() is not None


async def test_children_that_never_get_ready_are_not_started_in_a_rush(make: Make) -> None:
    bench = make()
    bench.pool.on_child_ended(current(bench).pid, 1)
    child = current(bench)
    bench.pool.on_child_started(child.key, child.pid, None)

    bench.pool.on_child_ended(child.pid, 1)

    assert current(bench) is child, "the next one comes later"
    assert bench.pool.slots[0].unready == 1


async def test_a_system_out_of_processes_is_asked_again_later(make: Make) -> None:
    bench = make()
    bench.pool.on_child_ended(current(bench).pid, -9)
    child = current(bench)

    bench.pool.on_child_refused(child.key, "Cannot allocate memory")

    assert bench.pool.slots[0].link is None
    assert bench.pool.slots[0].unready == 1


async def test_closing_ends_idle_children_and_kills_busy_ones(make: Make) -> None:
    bench = make(2)
    bench.source.add("a")
    bench.slot_places.run()
    idle, busy = bench.orders.children
    bench.begin(busy, 1)

    bench.pool.close()

    assert idle.is_told_to_end()
    assert bench.pool.unreaped_since() is not None
    bench.pool.on_child_ended(busy.pid, -9)
    bench.pool.on_child_ended(idle.pid, 0)
    assert bench.source.settled == {"a": LEFT}
    assert len(bench.orders.children) == 2, "no new ones"
    await bench.pool.wait_empty()


async def test_a_slot_whose_unstarted_jobs_were_all_taken_back_goes_on(make: Make) -> None:
    bench = make()
    bench.make_quick()
    bench.source.add("a")
    bench.slot_places.run()
    child = current(bench)
    bench.begin(child, 1)
    bench.source.add("b", "c")
    bench.slot_places.run()
    # The child ends the first before the others arrive, so that it tells at once.
    bench.finish(child, 1)
    link = bench.pool.slots[0].link
    assert link is not None
    b, c = link.jobs.values()

    assert bench.pool.stop_job(c, StopReason.CANCELLED)

    assert list(link.jobs.values()) == [b]
    assert not bench.source.waiting


async def test_the_template_is_not_asked_for_more_than_it_can_take_in(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nursery, "ORDERS_AT_ONCE", 2)
    bench = make(0)
    bench.pool.slots += [Slot(index) for index in range(5)]

    bench.pool.open()
    assert [child.key for child in bench.orders.children] == [1, 2]
    bench.bring_up(bench.orders.children[0])
    bench.pool.on_child_refused(2, "no memory")

    assert [child.key for child in bench.orders.children] == [1, 2, 3, 4]
    for child in bench.orders.children[2:]:
        bench.bring_up(child)
    assert len(bench.orders.children) == 5
