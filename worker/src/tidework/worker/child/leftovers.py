"""What a job's program leaves behind in other sessions: processes that fell to this child.

A child is a subreaper, so whatever its programs started becomes its own when their parents end,
double-forked daemons included. Programs of commands run in sessions of their own and can never come
back to ours; what else this child has started stays in ours. Linux only, as orphans.py.
"""

from __future__ import annotations

import contextlib
import os

from tidework.worker import process


class Leftovers:
    """Processes that fell to us since this was made.

    leader: the program itself, which is not one of them; 0 once it was reaped, or is to be killed
    """

    def __init__(self) -> None:
        self.leader = 0
        self._before = process.own_children()
        self._session = os.getsid(0)

    def reap(self) -> None:
        """Reap those that have ended."""
        for pid in self._found():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    def kill(self) -> int:
        """Kill and reap all of them; returns how many."""
        killed = 0
        while found := self._found():
            for pid in found:
                try:
                    process.kill(pid, None)
                except PermissionError:  # it took on other rights
                    self._before.add(pid)
                    continue
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)  # what it had started falls to us in turn
                killed += 1
        return killed

    def _found(self) -> list[int]:
        found = process.own_children() - self._before - {self.leader}
        return [pid for pid in found if _session_of(pid) not in (None, self._session)]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
