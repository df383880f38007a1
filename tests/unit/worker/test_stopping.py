"""Cancelled jobs are told, told once more, and killed; jobs at a checkpoint are asked back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.worker.children import FakeChild, PoolBench
from tidework.model.outcome import Outcome, OutcomeKind
from tidework.worker import frames
from tidework.worker.held import HeldJob, Line, StopReason
from tidework.worker.places.stopping import CANCEL_GRACE


class Bench(PoolBench):
    """One job runs, in a slot or on an event loop, or has not ``begun``."""

    def __init__(self, *, has_loop: bool, begun: bool = True) -> None:
        super().__init__(2 if has_loop else 1, has_loop=has_loop)
        self.start()
        self.source.add("a")
        self.job: HeldJob = self.source.lines[Line.COMMON][0]
        self.pool.run()
        if begun:
            self.begin(self.child, 1)
            self.child.orders()

    @property
    def child(self) -> FakeChild:
        """The newest one."""
        return self.orders.children[-1]

    def cancel(self) -> None:
        """Somebody does."""
        assert not self.pool.stop_job(self.job, StopReason.CANCELLED)

    def let_pass(self, seconds: float) -> None:
        """Since it was told."""
        self.job.stopped_at -= seconds
        self.look()

    def end(self, outcome: Outcome) -> None:
        self.child.say(frames.ended_frame(1, outcome, 0.1))
        self.read()

    @property
    def settled(self) -> Outcome:
        return self.source.settled["a"]


@pytest.fixture(params=[False, True], ids=["slot", "loop"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    found = Bench(has_loop=request.param)
    yield found
    found.close()


@pytest.fixture
async def alone() -> AsyncIterator[Bench]:
    found = Bench(has_loop=False)
    yield found
    found.close()


async def test_a_cancelled_job_is_told_and_ends_by_itself(bench: Bench) -> None:
    bench.cancel()
    bench.cancel()  # each renewal tells of it

    assert bench.child.orders() == [frames.Cancel(1)]
    bench.look()
    assert bench.pool.unreaped_since() is None
    assert bench.source.settled == {}
    bench.end(Outcome.cancelled())

    assert bench.settled.kind is OutcomeKind.CANCELLED
    assert "ended by itself" in bench.settled.cause


async def test_what_does_not_end_is_told_once_more_and_then_killed(bench: Bench) -> None:
    bench.cancel()
    bench.child.say(frames.alive_frame())
    bench.read()
    bench.child.orders()

    bench.let_pass(CANCEL_GRACE * 0.6)
    bench.look()
    assert frames.Stop(1) in bench.child.orders()
    assert bench.pool.unreaped_since() is None
    bench.let_pass(CANCEL_GRACE * 0.2)
    assert frames.Stop(1) not in bench.child.orders()
    bench.let_pass(CANCEL_GRACE * 0.3)
    assert bench.pool.unreaped_since() is not None
    bench.pool.on_child_ended(bench.child.pid, -9)

    assert bench.settled.kind is OutcomeKind.CANCELLED
    assert bench.settled.cause == "it went on for 5 s after it was told, and was killed"


async def test_who_had_ended_well_when_it_was_told_has_succeeded(bench: Bench) -> None:
    bench.cancel()

    bench.end(Outcome.complete(b"7"))

    assert bench.settled == Outcome.complete(b"7")


async def test_a_process_that_dies_of_it_is_no_loss(bench: Bench) -> None:
    bench.cancel()

    bench.pool.on_child_ended(bench.child.pid, 3)

    assert bench.settled.kind is OutcomeKind.CANCELLED
    assert bench.settled.cause == "its process ended: exit code 3"


async def test_the_end_of_a_drain_does_not_bring_a_cancelled_job_back(bench: Bench) -> None:
    bench.cancel()
    bench.pool.kill_running(StopReason.WORKER_LEAVES)

    bench.pool.on_child_ended(bench.child.pid, -9)

    assert bench.settled.kind is OutcomeKind.CANCELLED


async def test_its_process_is_replaced_since_anything_may_be_left_in_it(alone: Bench) -> None:
    child = alone.child
    alone.cancel()
    alone.source.add("b")
    alone.pool.run()
    assert child.orders() == [frames.Cancel(1)]
    alone.end(Outcome.cancelled())

    assert child.is_told_to_end()
    assert alone.child is not child
    alone.bring_up(alone.child)
    assert [frame.number for frame in alone.child.jobs()] == [1]


async def test_a_lease_that_is_lost_meanwhile_ends_it_at_once(alone: Bench) -> None:
    alone.cancel()
    assert not alone.pool.stop_job(alone.job, StopReason.LEASE_LOST)
    assert alone.pool.unreaped_since() is not None

    alone.pool.on_child_ended(alone.child.pid, -9)

    assert (alone.source.settled, alone.source.forgotten) == ({}, ["a"])


@pytest.fixture(params=[False, True], ids=["slot", "loop"])
async def unbegun(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    """The job lies in a child that does not begin it."""
    found = Bench(has_loop=request.param, begun=False)
    yield found
    found.close()


async def test_who_has_not_begun_is_cancelled_when_its_child_dies_and_does_not_run_again(
    unbegun: Bench,
) -> None:
    unbegun.cancel()
    unbegun.let_pass(CANCEL_GRACE * 1.1)
    assert unbegun.pool.unreaped_since() is not None

    unbegun.pool.on_child_ended(unbegun.child.pid, -9)

    assert unbegun.settled == Outcome.cancelled("it had not begun")
    assert unbegun.source.taken_back == []


async def test_who_has_not_begun_and_lost_its_lease_does_not_run_again(unbegun: Bench) -> None:
    assert not unbegun.pool.stop_job(unbegun.job, StopReason.LEASE_LOST)

    unbegun.pool.on_child_ended(unbegun.child.pid, -9)

    assert (unbegun.source.settled, unbegun.source.forgotten) == ({}, ["a"])
    assert unbegun.source.taken_back == []


async def test_a_lease_that_is_lost_in_a_child_that_is_dying_does_not_come_back(
    unbegun: Bench,
) -> None:
    unbegun.pool.kill_running(StopReason.WORKER_LEAVES)
    assert not unbegun.pool.stop_job(unbegun.job, StopReason.LEASE_LOST)

    unbegun.pool.on_child_ended(unbegun.child.pid, -9)

    assert (unbegun.source.settled, unbegun.source.forgotten) == ({}, ["a"])
    assert unbegun.source.taken_back == []


async def test_a_cancel_does_not_put_the_timeout_off(bench: Bench) -> None:
    bench.job.timeout = 5
    assert bench.job.started_at is not None
    bench.job.started_at -= 4
    bench.cancel()
    bench.child.say(frames.alive_frame())
    bench.read()

    bench.let_pass(1.1)

    assert bench.pool.unreaped_since() is not None


async def test_what_a_job_says_reaches_its_source(bench: Bench) -> None:
    bench.child.say(
        frames.said_frame(1, b'[1,null,""]', b""),
        frames.said_frame(1, b"", b'{"":7}'),
        frames.said_frame(9, b'[1,null,""]', b""),
    )
    bench.read()

    assert bench.source.notes.said == [
        ("a", b'[1,null,""]', b""),
        ("a", b'[1,null,""]', b'{"":7}'),
    ]
    assert bench.job.said == 2


async def test_a_worker_that_leaves_asks_for_jobs_at_a_checkpoint(bench: Bench) -> None:
    bench.pool.stopping.leave(bench.pool.links())
    bench.child.say(frames.said_frame(1, b'[1,null,""]', b""))
    bench.read()
    assert bench.child.orders() == [], "it is at none"

    bench.child.say(frames.said_frame(1, b"", b"{}"), frames.said_frame(1, b"", b'{"":1}'))
    bench.read()

    assert bench.child.orders() == [frames.Release(1)], "once"


async def test_also_for_those_that_were_at_one_before(bench: Bench) -> None:
    bench.child.say(frames.said_frame(1, b"", b"{}"))
    bench.read()
    assert bench.child.orders() == []

    bench.pool.stopping.leave(bench.pool.links())

    assert bench.child.orders() == [frames.Release(1)]


@pytest.mark.parametrize(
    ("progress", "positions"),
    [(b"{", b""), (b"[1]", b""), (b"", b"[]"), (b"", b"{}\t"), (b"", b"x" * 70_000), (b"7", b"")],
)
async def test_a_process_that_says_nonsense_is_broken(
    alone: Bench, progress: bytes, positions: bytes
) -> None:
    alone.child.say(frames.said_frame(1, progress, positions))
    alone.read()

    assert alone.pool.unreaped_since() is not None
    assert alone.source.notes.said == []
