"""Small pure parts: backoff, service times, exits in words, outcomes of stops, waits."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from datetime import timedelta
from math import inf

import pytest

from tests.unit.worker.jobs import held
from tidework.backoff import Backoff
from tidework.model.lease import ClaimedJob
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.model.task import TaskSpec
from tidework.worker import process
from tidework.worker.held import Line, StopReason
from tidework.worker.memory.usage import pss_bytes
from tidework.worker.places.outcomes import LEFT, outcome_of_dead
from tidework.worker.places.service_times import MAX_AHEAD, ServiceTimes
from tidework.worker.queue.facts import WorkerFacts
from tidework.worker.queue.waiting import KEPT_AFTER, WAIT_AHEAD, Waiting, outcome_of_late


def test_backoff_doubles_up_to_its_cap_and_starts_over() -> None:
    draws = deque([1.0] * 20)
    backoff = Backoff(timedelta(seconds=1), timedelta(seconds=5), draws.popleft)

    assert [backoff.next().total_seconds() for _ in range(5)] == [1, 2, 4, 5, 5]
    backoff.reset()
    assert backoff.next() == timedelta(seconds=1)


def test_backoff_is_drawn_from_the_upper_half() -> None:
    assert Backoff(timedelta(seconds=8), random=lambda: 0.0).next() == timedelta(seconds=2.5)
    assert Backoff(timedelta(seconds=4), random=lambda: 0.5).next() == timedelta(seconds=3)


def test_nothing_is_claimed_ahead_before_a_job_was_measured() -> None:
    assert ServiceTimes().ahead_per_slot() == 0


@pytest.mark.parametrize(
    ("seconds", "ahead"),
    [
        (0.0, MAX_AHEAD),
        (0.0001, MAX_AHEAD),
        (0.001, 50),
        (0.01, 5),
        (0.04, 1),
        (0.09, 1),
        (0.11, 0),
    ],
)
def test_about_fifty_milliseconds_of_work_are_claimed_ahead(seconds: float, ahead: int) -> None:
    times = ServiceTimes()
    times.note("t", seconds)

    assert times.ahead_per_slot() == ahead


def test_one_slow_job_among_short_ones_ends_claiming_ahead() -> None:
    times = ServiceTimes()
    for _ in range(100):
        times.note("short", 0.001)
    times.note("slow", 10.0)

    assert times.ahead_per_slot() == 0
    assert times.is_short("short")
    assert not times.is_short("slow")
    assert not times.is_short("never seen")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exit code 0"),
        (3, "exit code 3"),
        (-11, "signal 11 (SIGSEGV)"),
        (-9, "signal 9 (SIGKILL)"),
        (-250, "signal 250"),
        (None, "unknown end"),
    ],
)
def test_exits_in_words(code: int | None, words: str) -> None:
    assert process.describe_exit(code) == words


def test_a_job_whose_child_died_is_a_loss_with_its_cause() -> None:
    found = outcome_of_dead(held("a"), None, "signal 11 (SIGSEGV)")

    assert found is not None
    assert found.kind is OutcomeKind.LOSS
    error = JobError.decode(found.detail)
    assert (error.type, error.cause) == ("WorkerLost", "signal 11 (SIGSEGV)")


def test_a_child_without_a_pipe_lost_its_job() -> None:
    found = outcome_of_dead(held("a"), (StopReason.BROKEN, None), "signal 9 (SIGKILL)")

    assert found is not None
    assert found.kind is OutcomeKind.LOSS


@pytest.mark.parametrize(("attempt", "kind"), [(1, OutcomeKind.RETRY), (2, OutcomeKind.BURY)])
def test_a_hard_timeout_is_a_failed_attempt(attempt: int, kind: OutcomeKind) -> None:
    job = held("a", attempt=attempt, max_attempts=2)

    found = outcome_of_dead(job, (StopReason.TIMEOUT, job), "signal 9 (SIGKILL)")

    assert found is not None
    assert found.kind is kind
    assert JobError.decode(found.detail).cause == "timeout"


def test_stops_that_are_nobodys_fault() -> None:
    job, other = held("a"), held("b")

    assert outcome_of_dead(job, (StopReason.CANCELLED, job), "") == Outcome.cancelled()
    assert outcome_of_dead(job, (StopReason.WORKER_LEAVES, job), "") == LEFT
    assert outcome_of_dead(job, (StopReason.LEASE_LOST, job), "") is None
    beside = outcome_of_dead(job, (StopReason.TIMEOUT, other), "")
    assert beside == Outcome.release(reason="its process was ended for another job: timeout")


@pytest.mark.skipif(sys.platform != "linux", reason="PSS is told by Linux alone")
def test_pss_of_a_process() -> None:
    code = "held = bytearray(b'x' * 50_000_000); print(len(held), flush=True); input()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = pss_bytes(child.pid)
        child.communicate(b"\n")

    assert found is not None
    assert found > 50_000_000
    assert pss_bytes(child.pid) is None


def late(releases: int, line: Line) -> Outcome:
    job = held("j")
    job.claimed = ClaimedJob("j", "w.1:1", 1, 1, 0, releases, b"{}")
    job.line = line
    return outcome_of_late(job)


def test_a_job_that_waited_too_long_is_given_back_less_and_less_often() -> None:
    ahead = [late(releases, Line.COMMON) for releases in (0, 4, 5, 6)]
    lost = [late(releases, Line.SOLITARY) for releases in (0, 1, 2)]

    assert [found.delay.total_seconds() for found in ahead] == [0, 0, 1, 2]
    assert [found.delay.total_seconds() for found in lost] == [1, 2, 4]
    assert {found.kind for found in (*ahead, *lost)} == {OutcomeKind.RELEASE}


def test_a_lost_job_that_finds_no_child_is_kept_at_last_and_one_claimed_ahead_never() -> None:
    waiting = Waiting()
    for name, line, releases in (
        ("ahead", Line.COMMON, KEPT_AFTER),
        ("lost", Line.SOLITARY, KEPT_AFTER - 1),
        ("kept", Line.SOLITARY, KEPT_AFTER),
    ):
        job = held(name)
        job.claimed = ClaimedJob(name, "w.1:1", 1, 1, 0, releases, b"{}")
        job.line = line
        waiting.add(job)

    assert waiting.late_at() == WAIT_AHEAD
    assert [job.id for job in waiting.take_late(60.0)] == ["ahead", "lost"]
    assert waiting.late_at() == inf
    assert [job.id for job in waiting.clear()] == ["kept"]


def facts(loop_tasks: set[str] | None) -> WorkerFacts:
    return WorkerFacts("w.1", {"t": TaskSpec("t", "q")}, 600.0, 600.0, loop_tasks=loop_tasks)


@pytest.mark.parametrize(
    ("loop_tasks", "losses", "line"),
    [
        (None, 0, Line.COMMON),
        (None, 2, Line.COMMON),
        ({"t"}, 0, Line.COMMON),
        ({"t"}, 1, Line.SOLITARY),
    ],
)
def test_on_an_event_loop_a_lost_job_waits_for_a_child_of_its_own(
    loop_tasks: set[str] | None, losses: int, line: Line
) -> None:
    claimed = ClaimedJob("j", "w.1:1", 1, 1, losses, 0, b"{}")

    assert facts(loop_tasks).line_of(claimed) is line
