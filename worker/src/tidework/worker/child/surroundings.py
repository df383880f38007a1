"""The surroundings of jobs in a process: what one finds, the next one has to find as well.

After each job it is looked what has changed. What can be put right is, and is told once for each
task; where it cannot the process is worn, and is replaced before its next job. What tasks keep for
their next run, connections and threads of a pool, is left alone as long as there is room for more.

Two looks: a quick one after each job (2 us), and a thorough one (30 us, more when it is rare),
which is made after a long job, and of short ones now and then: it costs a hundredth of the time.
Whether there is room for another open file is asked once jobs ran for a moment: they cannot open
many in less.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # without names of signals, which cost more
import logging
import os
import signal
from _thread import _count as count_threads
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from tidework.worker.child import limits_of_process as limits

LONG, SPACING = 0.005, 0.02
"""Seconds that a job has to run for a thorough look after it, or since the last such look."""
MOMENT = 0.00005
"""Seconds of running jobs, in which a hundred files can be opened."""
MOST_THREADS = 100
"""Threads that jobs may leave running."""
MOST_DESCRIPTORS = 4096
"""Descriptors that jobs may leave open, if half of those that are free at the start are more."""
LEAST_DESCRIPTORS = 16
TOLD = 1000
MOST_LOOKS = 3
_LISTING = next((each for each in ("/proc/self/fd", "/dev/fd") if Path(each).is_dir()), "")
_SIGNALS = tuple(int(number) for number in sorted(signal.valid_signals()))
_STANDARD = (0, 1, 2)
_TIMERS = (
    (signal.ITIMER_REAL, "SIGALRM"),
    (signal.ITIMER_VIRTUAL, "SIGVTALRM"),
    (signal.ITIMER_PROF, "SIGPROF"),
)

logger = logging.getLogger(__name__)


class Surroundings:
    """Of this process, as they are now.

    pipe:  a descriptor that stays open while there are jobs
    again: sets up what handlers of signals Python does not know of (stacks.answer_signals)
    """

    def __init__(self, pipe: int, again: Callable[[], None]) -> None:
        self._pipe = pipe
        self._again = again
        self._home = _open_home()
        self._home_was = _identity(self._home)
        self._cwd = _cwd()
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._environ = os.environ
        self._now = cast("dict[bytes, bytes]", vars(os.environ)["_data"])
        self._variables = dict(self._now)
        self._mask = _signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._handlers = _handlers()
        self._bounds = limits.bounds()
        self._priority = os.getpriority(os.PRIO_PROCESS, 0)
        self._standard = _standard()
        self._most_threads = count_threads() + MOST_THREADS
        self._most_open = _most_open(_lowest_free(pipe))
        self._look_thoroughly_at = 0.0
        self._ran = 0.0
        self._told: set[tuple[str, str]] = set()

    def look(self, ran: float, now: float, job: Mapping[str, Any]) -> str | None:
        """To be called after a job that ran for so many seconds, with what tells of it in the log.

        Returns why the process has to be replaced before the next one, in words, else None.
        """
        changed: list[str] = []
        self._ran += ran
        worn = None
        for _ in range(MOST_LOOKS):
            try:
                worn = self._look(ran, now, changed)
                break
            except BaseException as error:  # noqa: BLE001 - of a handler or a thread that jobs left
                self._look_thoroughly_at = 0.0  # which stops timers
                worn = f"what its jobs left cannot be looked at: {type(error).__name__}"
        if changed:
            self._tell(changed, job)
        return worn

    def _look(self, ran: float, now: float, changed: list[str]) -> str | None:
        worn = None
        if os.umask(self._umask) != self._umask:
            changed.append("the umask")
        if self._now != self._variables or os.environ is not self._environ:
            changed.append(self._restore_variables())
        try:
            moved = os.getcwd() != self._cwd  # noqa: PTH109 - a Path costs ten times as much
        except OSError:
            moved = True
        if moved:
            worn = self._go_home(changed)
        if now >= self._look_thoroughly_at or ran >= LONG:
            self._look_thoroughly_at = now + SPACING
            worn = self._look_thoroughly(changed) or worn
        if count_threads() > self._most_threads:
            left = count_threads() - self._most_threads + MOST_THREADS
            worn = f"{left} threads that its jobs left running"
        if self._ran > MOMENT:
            self._ran = 0.0
            worn = worn or self._look_for_room(changed)
        return worn

    def _look_for_room(self, changed: list[str]) -> str | None:
        try:
            lowest = os.dup(self._pipe)
            os.close(lowest)
        except OSError:
            # Perhaps the job took away only the right to open more.
            if self._look_thoroughly(changed) is None and changed:
                return None
            return "its jobs left so many files open that it cannot open another one"
        if lowest <= self._most_open:
            return None
        return f"its jobs left {count_open() or lowest} files open"

    def _restore_variables(self) -> str:
        os.environ = self._environ  # noqa: B003 - it is the one that was there
        names = self._now.keys() | self._variables.keys()
        found = [name for name in names if self._now.get(name) != self._variables.get(name)]
        for name in found:
            if name in self._variables:
                os.environb[name] = self._variables[name]
            else:
                del os.environb[name]
        listed = ", ".join(sorted(os.fsdecode(name) for name in found))
        return f"the environment ({listed})" if listed else "the environment"

    def _go_home(self, changed: list[str]) -> str | None:
        try:
            if self._home_was is None or _identity(self._home) != self._home_was:
                return "a job left its working directory, and closed the way back"
            if os.path.samestat(Path().stat(), os.fstat(self._home)):
                self._cwd = _cwd()  # the folder itself was renamed or removed
                return None
            os.fchdir(self._home)
        except OSError as error:
            return f"a job left its working directory, and it cannot be put back: {error.strerror}"
        self._cwd = _cwd()
        changed.append("the working directory")
        return None

    def _look_thoroughly(self, changed: list[str]) -> str | None:
        self._restore_signals(changed)
        worn = limits.restore(self._bounds, changed)
        if (priority := os.getpriority(os.PRIO_PROCESS, 0)) != self._priority:
            try:
                os.setpriority(os.PRIO_PROCESS, 0, self._priority)
                changed.append("the priority (nice)")
            except PermissionError:
                worn = f"a job set its priority (nice) to {priority}"
        if _standard() != self._standard:
            worn = "a job closed or redirected its input, output or errors"
        if (found := count_open()) > self._most_open:
            worn = f"its jobs left {found} files open"
        return worn

    def _restore_signals(self, changed: list[str]) -> None:
        for timer, name in _TIMERS:
            if any(signal.setitimer(timer, 0)):
                changed.append(f"the timer of {name}")
        if _signal.pthread_sigmask(signal.SIG_BLOCK, ()) != self._mask:
            for number in signal.sigpending():
                signal.signal(number, signal.SIG_IGN)  # it would strike between two jobs
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            changed.append("the blocked signals")
        if _handlers() != self._handlers:
            found = [
                number
                for number, before in zip(_SIGNALS, self._handlers, strict=True)
                if _signal.getsignal(number) != before
            ]
            for number in found:
                before = self._handlers[_SIGNALS.index(number)]
                signal.signal(number, signal.SIG_DFL if before is None else before)
            self._again()
            self._handlers = _handlers()
            changed.append("the handlers of " + ", ".join(map(_name_of, found)))

    def _tell(self, changed: list[str], job: Mapping[str, Any]) -> None:
        task = str(job.get("task", ""))
        news = [each for each in changed if (task, each) not in self._told]
        if not news or len(self._told) > TOLD:
            return
        self._told.update((task, each) for each in news)
        extra = {
            "event": "process_changed",
            "job_id": job.get("job_id"),
            "task": task,
            "queue": job.get("queue"),
            "attempt": job.get("attempt"),
            "changed": ", ".join(news),
        }
        logger.warning("a job left its process changed: it was put right", extra=extra)


def count_open() -> int:
    """How many descriptors are open, 0 if that cannot be told."""
    try:
        return len(os.listdir(_LISTING)) - 1 if _LISTING else 0  # noqa: PTH208 - as above
    except OSError:
        return 0


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - as above
    except OSError:
        return ""


def _open_home() -> int:
    try:
        return os.open(".", getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC)
    except OSError:
        return -1


def _handlers() -> tuple[Any, ...]:
    return tuple(map(_signal.getsignal, _SIGNALS))


def _standard() -> list[tuple[int, int, int] | None]:
    return [_identity(descriptor) for descriptor in _STANDARD]


def _identity(descriptor: int) -> tuple[int, int, int] | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_rdev


def _lowest_free(descriptor: int) -> int:
    found = os.dup(descriptor)
    os.close(found)
    return found


def _most_open(lowest: int) -> int:
    """Half of what is free is the jobs'."""
    free = limits.most_descriptors(2 * MOST_DESCRIPTORS) - lowest
    return lowest + max(LEAST_DESCRIPTORS, free // 2)


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
