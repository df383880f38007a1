"""The async child as the supervisor sees it, spoken for by the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.worker.children import FakeChild, PoolBench
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.worker import frames
from tidework.worker.held import HeldJob, Line, StopReason
from tidework.worker.places import loop_places
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.outcomes import LEFT
from tidework.worker.places.places import AHEAD_IN_CHILD
from tidework.worker.places.slot import Recycling


class Bench(PoolBench):
    """Places on an event loop."""

    def __init__(self, places: int = 3, *, jobs: int = 1000, memory: int = 1 << 30) -> None:
        super().__init__(places, has_loop=True, jobs=jobs, memory=memory)
        self.start()

    @property
    def child(self) -> FakeChild:
        """The newest one with a loop."""
        return [child for child in self.orders.children if child.places][-1]

    @property
    def link(self) -> ChildLink:
        found = self.loop_places.slot.link
        assert found is not None
        return found

    def put(self, *names: str, losses: int = 0, timeout: float = 600.0) -> list[HeldJob]:
        self.source.add(*names, losses=losses, timeout=timeout, line=Line.COMMON)
        added = list(self.source.lines[Line.COMMON])[-len(names) :]
        self.pool.run()
        return added

    def names(self) -> list[str]:
        """Of jobs that wait."""
        return [job.id for job in self.source.lines[Line.COMMON]]

    def stopped(self, number: int) -> None:
        """The child says that it ended a job that was stopped."""
        self.child.say(frames.ended_frame(number, Outcome.cancelled(), 0.1))
        self.read()

    def be_silent(self, seconds: float) -> None:
        """The child has said nothing for so long."""
        self.link.heard_at = self.clock.monotonic() - seconds

    def block(self) -> None:
        """Its loop did not answer."""
        self.be_silent(5)
        self.look()
        self.link.asked_at = self.clock.monotonic() - 3
        self.look()
        assert self.link.blocked


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    found = Bench()
    yield found
    found.close()


async def test_as_many_jobs_run_as_there_are_places(bench: Bench) -> None:
    bench.put(*"abcde")

    sent = bench.child.jobs()
    assert [frame.number for frame in sent] == [1, 2, 3]
    assert [frame.ahead for frame in sent] == [False, True, True], "they can be taken back"
    assert bench.names() == ["d", "e"]
    assert bench.pool.busy == 3
    bench.begin(bench.child, 2)
    bench.finish(bench.child, 2, 0.2)
    assert [frame.number for frame in bench.child.jobs()] == [4]
    assert bench.source.settled == {"b": Outcome.complete()}


async def test_short_jobs_go_ahead(bench: Bench) -> None:
    bench.loop_places.times.note("t", 0.001)

    bench.put(*[f"j{number}" for number in range(20)])

    assert len(bench.child.jobs()) == 3 + AHEAD_IN_CHILD
    assert bench.pool.busy == 3


async def test_room_is_what_is_free_and_some_ahead(bench: Bench) -> None:
    loops = bench.loop_places
    assert (loops.idle(), loops.ahead()) == (3, (0, 0))
    bench.put("a")
    assert loops.idle() == 2

    loops.times.note("t", 0.05)

    assert loops.ahead() == (3, 3)


async def test_every_started_job_of_a_child_that_died_is_lost(bench: Bench) -> None:
    bench.put("a", "b", "c")
    for number in (1, 2):
        bench.begin(bench.child, number)

    bench.pool.on_child_ended(bench.child.pid, -11)

    assert {name: found.kind for name, found in bench.source.settled.items()} == {
        "a": OutcomeKind.LOSS,
        "b": OutcomeKind.LOSS,
    }
    assert bench.source.taken_back == ["c"]
    bench.bring_up(bench.child)
    assert [frame.number for frame in bench.child.jobs()] == [1]


async def test_a_job_past_its_timeout_is_stopped_and_the_child_lives(bench: Bench) -> None:
    late, _ = bench.put("a", "b", timeout=5)
    bench.begin(bench.child, 1, ago=6)
    bench.begin(bench.child, 2)
    bench.child.jobs()

    bench.look()

    assert bench.child.orders() == [frames.Stop(1)]
    assert late.stop_reason is StopReason.TIMEOUT
    bench.stopped(1)
    outcome = bench.source.settled["a"]
    assert outcome.kind is OutcomeKind.RETRY
    assert JobError.decode(outcome.detail).cause == "timeout"
    assert bench.pool.unreaped_since() is None
    assert list(bench.link.jobs) == [2]


async def test_a_success_that_was_said_in_time_beats_the_stop(bench: Bench) -> None:
    bench.put("a", timeout=5)
    bench.begin(bench.child, 1, ago=6)
    bench.look()

    bench.finish(bench.child, 1, 0.2)

    assert bench.source.settled == {"a": Outcome.complete()}


@pytest.mark.parametrize(
    ("stop_reason", "order", "settled", "forgotten"),
    [
        (StopReason.CANCELLED, frames.Cancel(1), {"a": OutcomeKind.CANCELLED}, []),
        (StopReason.LEASE_LOST, frames.Stop(1), {}, ["a"]),
    ],
)
async def test_a_job_is_stopped_alone(
    bench: Bench,
    stop_reason: StopReason,
    order: frames.Order,
    settled: dict[str, OutcomeKind],
    forgotten: list[str],
) -> None:
    job, _ = bench.put("a", "b")
    for number in (1, 2):
        bench.begin(bench.child, number)
    bench.child.jobs()

    assert not bench.pool.stop_job(job, stop_reason)

    assert bench.child.orders() == [order]
    bench.stopped(1)
    assert {name: end.kind for name, end in bench.source.settled.items()} == settled
    assert bench.source.forgotten == forgotten
    assert bench.pool.unreaped_since() is None


async def test_stopping_a_job_that_has_not_started_gives_it_to_the_caller(bench: Bench) -> None:
    _, waiting = bench.put("a", "b")
    bench.begin(bench.child, 1)

    assert bench.pool.stop_job(waiting, StopReason.CANCELLED)

    assert list(bench.link.jobs) == [1]
    with pytest.raises(BlockingIOError):
        bench.child.take_permit()


async def test_who_goes_on_after_a_stop_costs_the_child_and_its_neighbours_nothing_else(
    bench: Bench,
) -> None:
    late, _ = bench.put("a", "b", timeout=5)
    bench.begin(bench.child, 1, ago=6)
    bench.begin(bench.child, 2)
    bench.look()
    bench.child.say(frames.alive_frame())
    bench.read()
    late.stopped_at -= loop_places.STOP_PATIENCE

    bench.look()

    assert bench.pool.unreaped_since() is not None
    bench.pool.on_child_ended(bench.child.pid, -9)
    assert JobError.decode(bench.source.settled["a"].detail).cause == "timeout"
    given_back = Outcome.release(reason="its process was ended for another job: timeout")
    assert bench.source.settled["b"] == given_back


async def test_a_loop_that_does_not_answer_a_stop_costs_everybody_a_loss(bench: Bench) -> None:
    late, _ = bench.put("a", "b", timeout=5)
    bench.begin(bench.child, 1, ago=6)
    bench.begin(bench.child, 2)
    bench.look()
    late.stopped_at = bench.clock.monotonic() - loop_places.STOP_PATIENCE
    bench.be_silent(3)

    bench.look()

    bench.pool.on_child_ended(bench.child.pid, -9)
    assert JobError.decode(bench.source.settled["a"].detail).cause == "timeout"
    assert bench.source.settled["b"].kind is OutcomeKind.LOSS
    assert JobError.decode(bench.source.settled["b"].detail).cause == "blocked"


async def test_a_silent_loop_with_jobs_is_asked(bench: Bench) -> None:
    bench.put("a")
    bench.begin(bench.child, 1)
    bench.child.jobs()
    bench.look()
    assert bench.child.orders() == []
    bench.be_silent(2)

    bench.look()
    assert bench.child.orders() == [frames.Ping()]
    bench.child.say(frames.alive_frame())
    bench.link.asked_at -= loop_places.ANSWER_WITHIN
    bench.look()

    assert not bench.link.blocked


async def test_a_blocked_loop_gets_no_jobs_and_gives_back_what_waits(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.put("a", "b")
    bench.begin(bench.child, 1)
    for job in bench.link.jobs.values():
        job.sent_at -= 1

    bench.block()

    assert bench.source.taken_back == ["b"]
    assert bench.names() == ["b"], "not sent again"
    assert bench.loop_places.idle() == 0
    assert "has not turned" in caplog.text
    assert "time.sleep" in caplog.text
    bench.child.jobs()
    bench.finish(bench.child, 1, 0.2)
    assert [frame.number for frame in bench.child.jobs()] == [3]


async def test_a_job_whose_permit_the_child_took_stays_with_it(bench: Bench) -> None:
    bench.put("a", "b")
    bench.begin(bench.child, 1)
    assert bench.child.take_permit() == 2
    for job in bench.link.jobs.values():
        job.sent_at -= 1

    bench.look()

    assert bench.source.taken_back == []
    assert list(bench.link.jobs) == [1, 2]


async def test_a_child_that_does_not_start_its_job_is_replaced(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("a")
    bench.look()
    assert bench.pool.unreaped_since() is None
    monkeypatch.setattr(loop_places, "START_PATIENCE", 0.0)

    bench.look()

    assert bench.pool.unreaped_since() is not None
    bench.pool.on_child_ended(bench.child.pid, -9)
    assert bench.source.settled == {}
    assert bench.source.taken_back == ["a"]


async def test_a_recycled_child_works_until_its_successor_is_ready_and_ends_with_its_last_job() -> (
    None
):
    bench = Bench(2, jobs=1)
    try:
        first = bench.child
        bench.put("a", "b", "c", "d")
        for number in (1, 2):
            bench.begin(first, number)
        bench.finish(first, 2, 0.2)
        bench.begin(first, 3)
        bench.finish(first, 3, 0.2)
        second = bench.child
        assert second is not first, "two jobs for two places"
        assert [frame.number for frame in first.jobs()] == [1, 2, 3, 4], "it goes on meanwhile"
        bench.bring_up(second)

        bench.put("e")
        assert second.jobs() == [], "two places in all"
        bench.begin(first, 4)
        bench.finish(first, 4, 0.2)
        assert [frame.number for frame in second.jobs()] == [1]
        assert not first.is_told_to_end()
        bench.finish(first, 1, 0.2)

        assert first.is_told_to_end()
        bench.pool.on_child_ended(first.pid, 0)
        assert bench.orders.children[-1] is second, "and has no other successor"
    finally:
        bench.close()


@pytest.mark.parametrize("refused", [True, False])
async def test_a_successor_that_does_not_come_up_is_not_ordered_again_with_each_report(
    *, refused: bool
) -> None:
    """No process is to be had, or the application does not import any more."""
    bench = Bench(places=1, jobs=1)
    first = bench.child
    try:
        for number in range(1, 11):
            bench.put(f"job{number}")
            bench.begin(first, number)
            bench.finish(first, number)
            assert [frame.number for frame in first.jobs()] == [number]
            if bench.child is first or bench.loop_places.successor is None:
                continue
            if refused:
                bench.pool.on_child_refused(bench.child.key, "no more processes")
            else:
                bench.pool.on_child_started(bench.child.key, bench.child.pid, None)
                bench.pool.on_child_ended(bench.child.pid, 1)
        assert len(bench.orders.children) == 2, "the loop's, and one successor"

        failed = bench.child
        bench.loop_places._paused_until = 0.0
        bench.pool.recycle_idle()  # as the memory watch does
        assert bench.child is not failed
        bench.bring_up(bench.child)
        assert first.is_told_to_end()
    finally:
        bench.close()


async def test_a_successor_takes_over_from_one_that_died(bench: Bench) -> None:
    bench.loop_places._recycling = Recycling(1, 1)
    bench.put("a")
    bench.begin(bench.child, 1)
    first = bench.child
    bench.link.pss = 2
    bench.finish(first, 1, 0.2)
    second = bench.child
    assert second is not first

    bench.pool.on_child_ended(first.pid, -9)
    bench.put("b")
    assert second.jobs() == []
    bench.loop_places._recycling = Recycling(1000, 1 << 30)
    bench.bring_up(second)

    assert [frame.number for frame in second.jobs()] == [1]
    assert bench.child is second


async def test_closing_kills_it_with_its_jobs_given_back(bench: Bench) -> None:
    bench.put("a", "b")
    for number in (1, 2):
        bench.begin(bench.child, number)

    bench.pool.close()
    bench.pool.on_child_ended(bench.child.pid, -9)

    assert bench.source.settled == {"a": LEFT, "b": LEFT}


async def test_a_report_of_an_unknown_job_is_nonsense(bench: Bench) -> None:
    bench.put("a")

    bench.finish(bench.child, 7, 0.2)

    assert bench.pool.unreaped_since() is not None
