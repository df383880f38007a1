"""Small pure parts: backoff, service times, exits in words, verdicts."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from datetime import timedelta

import pytest

from tests.unit.worker.jobs import held
from tidework.backoff import Backoff
from tidework.model.lease import ClaimedJob
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.model.task import TaskSpec
from tidework.worker import process
from tidework.worker.held import Mode, Verdict
from tidework.worker.memory.usage import pss_bytes
from tidework.worker.places.service_times import MAX_AHEAD, ServiceTimes
from tidework.worker.places.verdicts import LEFT, outcome_of_dead
from tidework.worker.queue.modes import Modes


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
    found = outcome_of_dead(held("a"), (Verdict.BROKEN, None), "signal 9 (SIGKILL)")

    assert found is not None
    assert found.kind is OutcomeKind.LOSS


@pytest.mark.parametrize(("attempt", "kind"), [(1, OutcomeKind.RETRY), (2, OutcomeKind.BURY)])
def test_a_hard_timeout_is_a_failed_attempt(attempt: int, kind: OutcomeKind) -> None:
    job = held("a", attempt=attempt, max_attempts=2)

    found = outcome_of_dead(job, (Verdict.TIMEOUT, job), "signal 9 (SIGKILL)")

    assert found is not None
    assert found.kind is kind
    assert JobError.decode(found.detail).cause == "timeout"


def test_verdicts_that_are_nobodys_fault() -> None:
    job, other = held("a"), held("b")

    assert outcome_of_dead(job, (Verdict.CANCELLED, job), "") == Outcome.cancelled()
    assert outcome_of_dead(job, (Verdict.HANDED_BACK, job), "") == LEFT
    assert outcome_of_dead(job, (Verdict.LEASE_LOST, job), "") is None
    beside = outcome_of_dead(job, (Verdict.TIMEOUT, other), "")
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


def modes(tasks: str, async_tasks: str, async_slots: int = 10) -> Modes:
    return Modes({name: TaskSpec(name, "q") for name in tasks}, set(async_tasks), async_slots)


def test_async_tasks_share_a_loop_if_there_is_one_unless_they_were_lost() -> None:
    found = modes("ab", "a")

    assert found.mode_of("a", 0) is Mode.SHARED
    assert found.mode_of("a", 1) is Mode.SOLITARY
    assert found.mode_of("b", 0) is Mode.ALONE
    assert modes("ab", "a", 0).mode_of("a", 0) is Mode.ALONE


def test_the_shares_of_an_application_with_one_kind_of_task_are_known() -> None:
    assert modes("ab", "").shares == (1.0, 0.0)
    assert modes("ab", "ab").shares == (0.0, 1.0)
    assert modes("ab", "ab", 0).shares == (1.0, 0.0)


def test_the_shares_of_others_are_learned_and_never_certain() -> None:
    found = modes("ab", "a")
    assert found.shares == (0.5, 0.5)

    for _ in range(200):
        found.note(Mode.SHARED)

    alone, shared = found.shares
    assert 0 < alone < 0.05
    assert alone + shared == 1


def test_a_job_that_finds_no_place_is_given_back_less_and_less_often_and_then_kept() -> None:
    found = modes("ab", "a")

    def claimed(releases: int) -> ClaimedJob:
        return ClaimedJob("j", "w.1:1", 1, 1, 0, releases, b"{}")

    assert [found.delay_of(claimed(n)).total_seconds() for n in (0, 1, 2)] == [1, 2, 4]
    assert [found.keeps(claimed(n)) for n in (9, 10)] == [False, True]
    alone = modes("ab", "a", 0)
    assert [alone.delay_of(claimed(n)).total_seconds() for n in (0, 4, 5, 6)] == [0, 0, 1, 2]
    assert not alone.keeps(claimed(15))
