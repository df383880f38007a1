"""Jobs that one more loss would bury do not meet in a worker: none takes the other along."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.waiting import until
from tests.unit.worker.consumers import QUEUE, Bench
from tests.unit.worker.jobs import Source, held
from tidework.model.job import JobState
from tidework.model.lease import POISON_CAP, ClaimedJob
from tidework.model.outcome import Outcome, OutcomeKind
from tidework.worker.held import HeldJob
from tidework.worker.queue.last_chance import keep_apart
from tidework.worker.queue.waiting import KEPT_AFTER

LAST = POISON_CAP - 1


def claim(name: str, losses: int = LAST, releases: int = 0) -> ClaimedJob:
    return ClaimedJob(name, "token", 1, 1, losses, releases, b"{}")


def pauses(
    *claimed: ClaimedJob, beside: Source | None = None, cap: int = POISON_CAP
) -> dict[str, float]:
    """Seconds for which those that are given back stay away."""
    found = keep_apart(claimed, [Source(), beside or Source()], cap)
    assert all(outcome.kind is OutcomeKind.RELEASE for outcome in found.values())
    return {name: outcome.delay.total_seconds() for name, outcome in found.items()}


def holding(losses: int) -> Source:
    source = Source()
    source.held["other"] = held("other", source=source, losses=losses)
    return source


def test_one_runs_beside_jobs_that_have_chances_left() -> None:
    assert pauses(claim("a"), claim("b", 0), claim("c", LAST - 1)) == {}
    assert pauses(claim("a"), beside=holding(LAST - 1)) == {}


def test_of_several_claimed_at_once_all_are_given_back_and_the_first_comes_again() -> None:
    assert pauses(claim("a"), claim("x", 0), claim("b"), claim("c", releases=2)) == {
        "a": 0.0,
        "b": 1.0,
        "c": 4.0,
    }


def test_while_one_runs_others_are_given_back() -> None:
    assert pauses(claim("a"), claim("b"), beside=holding(LAST)) == {"a": 1.0, "b": 1.0}
    ended = holding(LAST)
    ended.held["other"].outcome = Outcome.complete()
    assert pauses(claim("a"), beside=ended) == {}


def test_a_job_that_is_claimed_anew_does_not_keep_itself_off() -> None:
    source = Source()
    source.held["a"] = held("a", source=source, losses=LAST)
    assert pauses(claim("a"), beside=source) == {}


def test_nothing_is_given_back_for_ever() -> None:
    assert pauses(claim("a", releases=KEPT_AFTER), beside=holding(LAST)) == {}


@pytest.mark.parametrize(("cap", "losses"), [(1, 0), (2, 0)])
def test_a_job_that_was_never_lost_has_its_chance(cap: int, losses: int) -> None:
    assert pauses(claim("a", losses), claim("b", losses), cap=cap) == {}


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    found = Bench(slots=2)
    found.start()
    yield found
    await found.stop()


def running(bench: Bench) -> dict[str, HeldJob]:
    return {job.id: job for link in bench.pool.links() for job in link.jobs.values()}


def end(bench: Bench, name: str) -> None:
    (key,) = [
        link.key for link in bench.pool.links() for job in link.jobs.values() if job.id == name
    ]
    (child,) = [child for child in bench.orders.children if child.key == key]
    number = running(bench)[name].number
    bench.begin(child, number)
    bench.finish(child, number)


async def test_two_that_were_always_lost_together_run_one_after_the_other(bench: Bench) -> None:
    await bench.broker.pause(QUEUE, "")
    await bench.enqueue("a", "b", "innocent")
    entries = bench.broker._queues[QUEUE].entries
    for name in ("a", "b"):
        entries[name].losses = LAST
    await bench.broker.resume(QUEUE)
    bench.consumer.on_work()

    await until(lambda: set(running(bench)) == {"a", "innocent"})
    record = await bench.job("b")
    assert (record.state, record.attempt, record.losses) == (JobState.SCHEDULED, 0, LAST)
    assert "does not run beside" in record.history[-1].cause
    end(bench, "a")

    await until(lambda: set(running(bench)) == {"b", "innocent"})
    assert (await bench.job("a")).state is JobState.SUCCEEDED
    assert bench.numbers.total("lease_lost") == 0
