"""Orphans: processes that outlived the child whose job started them.

Children are subreapers, so what their jobs leave behind stays below them while they live. When a
child dies it falls to the supervisor, which is one too: whatever it did not start itself is
killed and reaped. Linux only; elsewhere orphans fall to init.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tidework.worker import process

logger = logging.getLogger(__name__)


class Orphans:
    """Reaps every child of this process.

    is_ours: is this pid a process that was started on purpose?
    on_end:  told of the end of one that was, if it fell to us (its parent had died)
    """

    def __init__(
        self, is_ours: Callable[[int], bool], on_end: Callable[[int, int | None], None]
    ) -> None:
        self._is_ours = is_ours
        self._on_end = on_end

    def kill(self) -> None:
        """Kill what fell to us; to be called when a child has ended."""
        for pid in process.own_children():
            if not self._is_ours(pid):
                logger.warning(
                    "a process outlived its job and was killed",
                    extra={"event": "orphan_killed", "child": pid},
                )
                process.kill(pid, None)

    def reap(self) -> None:
        """Reap what has ended; to be called at SIGCHLD."""
        while (pid := process.ended_child()) is not None:
            code = process.reap_leader(pid)
            if self._is_ours(pid):
                self._on_end(pid, code)
            else:
                self.kill()  # its own children fall to us in turn
