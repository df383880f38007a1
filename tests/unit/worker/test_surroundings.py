"""What jobs leave in a process, seen from within: what is put right, and what wears it out."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidework.worker.child import surroundings
from tidework.worker.child.surroundings import Surroundings

# A thread's: the timer of SIGALRM is not to be there.
pytestmark = pytest.mark.timeout(60, method="thread")

JOB = {"job_id": "j1", "task": "t"}


class OwnSurroundings:
    """Surroundings of this process; ``look`` as after a job that ran for a second."""

    def __init__(self) -> None:
        self.again = 0
        self._now = 0.0
        self._pipe = os.pipe()
        self.found = Surroundings(self._pipe[0], self._set_up_again)
        assert self.look() is None

    def _set_up_again(self) -> None:
        self.again += 1
        signal.signal(signal.SIGWINCH, lambda _number, _frame: None)  # another one each time

    def look(self, *, ran: float = 1.0) -> str | None:
        self._now += ran
        return self.found.look(ran, self._now, JOB)

    def close(self) -> None:
        for descriptor in self._pipe:
            os.close(descriptor)


@pytest.fixture
def begin() -> Iterator[Callable[[], OwnSurroundings]]:
    """In the test, not before: pytest writes its name into the environment."""
    begun: list[OwnSurroundings] = []

    def new() -> OwnSurroundings:
        begun.append(OwnSurroundings())
        return begun[-1]

    yield new
    for own in begun:
        own.close()


def changes(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(record)["changed"] for record in caplog.records if "changed" in vars(record)]


def test_nothing_is_told_of_a_job_that_left_nothing(
    begin: Callable[[], OwnSurroundings], caplog: pytest.LogCaptureFixture
) -> None:
    own = begin()
    for _ in range(3):
        assert own.look() is None

    assert not caplog.records


def test_a_short_job_s_folder_umask_and_variables_are_put_right_each_time(
    begin: Callable[[], OwnSurroundings], caplog: pytest.LogCaptureFixture
) -> None:
    own = begin()
    folder, umask = Path.cwd(), os.umask(0o22)
    os.umask(umask)
    for _ in range(2):
        os.chdir("/")
        os.umask(umask ^ 0o7)
        os.environ["LEFT"] = "1"

        assert own.look(ran=0.000001) is None

        assert Path.cwd() == folder
        assert os.umask(umask) == umask
        assert "LEFT" not in os.environ
    told = "the umask, the environment (LEFT), the working directory"
    assert changes(caplog) == [told], "once for each task"
    assert vars(caplog.records[0])["job_id"] == "j1"


def test_handlers_masks_and_other_timers_are_put_right(
    begin: Callable[[], OwnSurroundings], caplog: pytest.LogCaptureFixture
) -> None:
    own = begin()
    before = signal.getsignal(signal.SIGHUP)
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    signal.signal(signal.SIGPROF, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_PROF, 60)

    assert own.look() is None

    assert signal.getsignal(signal.SIGHUP) == before
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
    assert own.look() is None
    assert own.again == 1, "that is not told as a change itself"
    signal.signal(signal.SIGWINCH, signal.SIG_DFL)
    handlers = "the handlers of SIGHUP, SIGPROF"
    assert changes(caplog) == [f"the timer of SIGPROF, the blocked signals, {handlers}"]


def test_signals_that_wait_behind_a_mask_do_no_harm(begin: Callable[[], OwnSurroundings]) -> None:
    own = begin()

    def strike(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2})
    signal.raise_signal(signal.SIGUSR1)  # nobody handles it
    signal.signal(signal.SIGUSR2, strike)
    signal.raise_signal(signal.SIGUSR2)

    assert own.look() is None

    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
    assert signal.getsignal(signal.SIGUSR1) == signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL


def test_a_handler_that_strikes_while_it_is_looked_at_does_no_harm(
    begin: Callable[[], OwnSurroundings],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    own = begin()
    umask = os.umask
    struck: list[int] = []

    def strike(mask: int) -> int:
        if not struck:
            struck.append(mask)
            raise KeyboardInterrupt
        return umask(mask)

    monkeypatch.setattr(os, "umask", strike)
    signal.setitimer(signal.ITIMER_REAL, 60)

    assert own.look() is None
    assert struck
    assert changes(caplog) == ["the timer of SIGALRM"]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_of_short_jobs_signals_and_limits_are_looked_at_now_and_then(
    begin: Callable[[], OwnSurroundings],
) -> None:
    own = begin()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    own.look(ran=0.001)
    soon = signal.getsignal(signal.SIGHUP)
    for _ in range(20):
        own.look(ran=0.001)

    assert soon == signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) == before
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    own.look(ran=surroundings.LONG)
    assert signal.getsignal(signal.SIGHUP) == before


def test_without_a_way_back_to_its_folder_the_process_is_worn(
    begin: Callable[[], OwnSurroundings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = begin()
    home = own.found._home
    os.close(home)
    other = os.open("/", os.O_RDONLY)
    assert other == home, "its number is another folder's by now"

    os.chdir("/")
    worn = own.look()

    os.close(other)
    assert worn == "a job left its working directory, and closed the way back"


def test_what_cannot_be_looked_at_wears_the_process(
    begin: Callable[[], OwnSurroundings], monkeypatch: pytest.MonkeyPatch
) -> None:
    def strike(_mask: int) -> int:
        raise SystemExit(3)

    own = begin()
    with monkeypatch.context() as patched:
        patched.setattr(os, "umask", strike)
        worn = own.look()

    assert worn == "what its jobs left cannot be looked at: SystemExit"


def test_a_priority_is_put_back_and_one_that_cannot_be_wears_the_process(
    begin: Callable[[], OwnSurroundings],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    own, now = begin(), [os.getpriority(os.PRIO_PROCESS, 0)]

    def put_back(_which: int, _who: int, priority: int) -> None:
        now[0] = priority

    def refuse(_which: int, _who: int, _priority: int) -> None:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "getpriority", lambda _which, _who: now[0])
        patched.setattr(os, "setpriority", put_back)
        now[0] += 5
        assert own.look() is None
        assert changes(caplog) == ["the priority (nice)"]
        patched.setattr(os, "setpriority", refuse)
        now[0] += 5
        worn = own.look()

    assert worn == f"a job set its priority (nice) to {now[0]}"


def test_a_limit_is_put_back_and_one_that_cannot_be_wears_the_process(
    begin: Callable[[], OwnSurroundings], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = begin()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lower = (before[0] - 1, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, lower)
    assert own.look() is None
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before

    def refuse(_number: int, _bounds: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    resource.setrlimit(resource.RLIMIT_NOFILE, lower)
    with monkeypatch.context() as patched:
        patched.setattr(resource, "setrlimit", refuse)
        worn = own.look()

    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert worn == "a job lowered its limit RLIMIT_NOFILE for good"


def test_a_low_limit_of_files_is_put_back_before_it_is_asked_for_room(
    begin: Callable[[], OwnSurroundings],
) -> None:
    own = begin()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert own.look(ran=0.0) is None
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        assert own.found.look(1.0, 0.0, JOB) is None  # no thorough look is due
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_files_beyond_half_of_what_is_free_wear_the_process_also_above_a_gap(
    begin: Callable[[], OwnSurroundings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surroundings, "MOST_DESCRIPTORS", 20)
    own = begin()
    pool = [os.dup(0) for _ in range(10)]
    assert own.look() is None, "a pool is left alone"
    more = [os.dup(0) for _ in range(40)]

    worn = own.look(ran=0.0001)

    os.close(pool[0])
    also = own.look()
    for descriptor in [*pool[1:], *more]:
        os.close(descriptor)
    assert worn is not None
    assert worn.endswith("files open")
    assert also is not None
    assert also.endswith("files open")


def test_threads_of_a_pool_are_left_alone_and_no_end_of_them_is_not(
    begin: Callable[[], OwnSurroundings],
) -> None:
    own = begin()
    gate = threading.Event()
    threads = [threading.Thread(target=gate.wait) for _ in range(surroundings.MOST_THREADS + 3)]
    for thread in threads[:50]:
        thread.start()
    few = own.look()
    for thread in threads[50:]:
        thread.start()
    many = own.look()
    gate.set()
    for thread in threads:
        thread.join()

    assert few is None
    assert many == f"{surroundings.MOST_THREADS + 3} threads that its jobs left running"
    assert own.look() is None


def test_a_folder_that_was_renamed_is_still_the_same(
    begin: Callable[[], OwnSurroundings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    own = begin()

    (tmp_path / "a").rename(tmp_path / "b")
    renamed = own.look()
    os.chdir("/")
    left = own.look()
    here = Path.cwd()
    shutil.rmtree(tmp_path / "b")
    removed = [own.look(), own.look()]

    assert (renamed, left, *removed) == (None, None, None, None)
    assert here == tmp_path / "b"
    assert changes(caplog) == ["the working directory"]
