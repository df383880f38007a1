"""Processes: who ends whom, and who buries whom.

Linux does the work: PR_SET_PDEATHSIG lets a process die with its parent, PR_SET_CHILD_SUBREAPER
lets orphans fall to us, a pidfd names a process for ever. Elsewhere (macOS, for development) a
small thread watches the parent, orphans fall to init, and a pid stands for the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidework.errors import ConfigurationError

_PR_SET_PDEATHSIG = 1
_PR_GET_PDEATHSIG = 2
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"
TELL = signal.SIGURG
"""Has a child read its pipe while a job runs. Ignored by whoever has no use for it."""


def die_with_parent(parent: int) -> None:
    """Be killed when ``parent``, which has to be our parent, ends; at once if it has ended.

    On Linux it is the end of the parent's *thread* that started us which counts.
    """
    if _LINUX:
        _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    else:
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()
    # The parent may have ended before the line above.
    if os.getppid() != parent:
        os._exit(1)


@contextlib.contextmanager
def told_of_parents_death(number: signal.Signals) -> Iterator[None]:
    """Have our parent's death send us ``number`` meanwhile, whatever it else does. Linux only."""
    before = ctypes.c_int(0)
    if _LINUX:
        _prctl(_PR_GET_PDEATHSIG, ctypes.byref(before))
        _prctl(_PR_SET_PDEATHSIG, int(number))
    try:
        yield
    finally:
        if _LINUX:
            _prctl(_PR_SET_PDEATHSIG, before.value)


def become_subreaper() -> bool:
    """Have orphaned descendants become our children. False where the system cannot."""
    return _LINUX and _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def allow_descriptors(count: int) -> None:
    """See that this process may open so many files. Raises ConfigurationError if it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or count <= soft:
        return
    if hard != resource.RLIM_INFINITY and count > hard:
        raise ConfigurationError(
            f"the worker needs {count} open files for its slots and queues, the limit is {hard}; "
            "raise it (ulimit -n) or take fewer of them"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def _prctl(option: int, value: Any) -> bool:
    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


def open_pidfd(pid: int) -> int | None:
    """A descriptor that names the process, also after its pid is used again; None if unable."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, or a sandbox that forbids it
        return None


def kill(pid: int, pidfd: int | None) -> None:
    """SIGKILL the process; one that has ended is left alone."""
    send_signal(pid, pidfd, signal.SIGKILL)


def send_signal(pid: int, pidfd: int | None, number: signal.Signals) -> None:
    """Send the process a signal; one that has ended is left alone."""
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "linux" and pidfd is not None:
            signal.pidfd_send_signal(pidfd, number)
        else:
            os.kill(pid, number)


def catches(pid: int, number: signal.Signals) -> bool:
    """Has the process a handler for the signal? True where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:
        return True
    caught = next((int(line.split()[1], 16) for line in lines if line.startswith(b"SigCgt:")), -1)
    return bool(caught >> (number - 1) & 1)


def kill_group(leader: int) -> None:
    """SIGKILL the process group that ``leader`` leads.

    Only for a leader that has not been reaped: until then nobody else can get its number.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def terminate_group(leader: int) -> None:
    """SIGTERM to the process group that ``leader`` leads; as ``kill_group``."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGTERM)


def reap_leader(pid: int) -> int | None:
    """Reap our child ``pid`` if it has ended, after killing the rest of its group.

    Returns the exit code, negative for a signal, or None while it lives. Raises
    ChildProcessError if it is no child of ours (any more).
    """
    if not hasattr(os, "waitid"):  # macOS, before Python 3.13
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended == 0:
            return None
        kill_group(pid)
        return os.waitstatus_to_exitcode(status)
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        return None
    kill_group(pid)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def ended_child() -> int | None:
    """The pid of some child of ours that has ended and was not reaped, or None."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if found is None else found.si_pid


def own_children() -> set[int]:
    """Pids of our children, adopted ones included; empty where the system does not tell."""
    found: set[int] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found.update(int(pid) for pid in listing.read_text().split())
    return found


def unreaped_children(pid: int) -> int:
    """How many children of the process have ended and were not reaped, adopted ones included."""
    return sum(1 for child in children_of(pid) if _is_zombie(child))


def children_of(pid: int) -> list[int]:
    """Pids of a process' children; empty where the system does not tell."""
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, listing.read_bytes().split())
    return found


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return False


def describe_exit(code: int | None) -> str:
    """``exit code 3``, ``signal 11 (SIGSEGV)``."""
    if code is None:
        return "unknown end"
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
    return f"signal {-code} ({name})"
