"""Signals of the supervisor.

SIGTERM, SIGINT   the first asks to drain, the second to release what runs at once
SIGHUP            load the application anew; where the worker was started from a terminal, that
                  has gone: as SIGTERM
SIGUSR1           log the stacks of all processes
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)


class StopRequest:
    """What the signals have asked for so far."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurried = asyncio.Event()

    def ask(self, why: str) -> None:
        """Ask to drain; the second time, to release what runs at once."""
        if not self.asked.is_set():
            logger.info(
                "%s: no more jobs are claimed, running ones may finish",
                why,
                extra={"event": "worker_draining"},
            )
            self.asked.set()
        elif not self.hurried.is_set():
            logger.warning(
                "%s again: running jobs are released", why, extra={"event": "worker_hurried"}
            )
            self.hurried.set()


@contextmanager
def handled(
    stop: StopRequest,
    *,
    on_child: Callable[[], None],
    on_reload: Callable[[], None],
    on_stacks: Callable[[], None],
) -> Iterator[None]:
    """Handle signals on the running loop. ``on_child``: some child process has ended."""
    loop = asyncio.get_running_loop()
    ends = [signal.SIGTERM, signal.SIGINT]
    others = {signal.SIGCHLD: on_child, signal.SIGUSR1: on_stacks}
    if _has_terminal():
        ends.append(signal.SIGHUP)
    else:
        others[signal.SIGHUP] = on_reload
    for number in ends:
        loop.add_signal_handler(number, stop.ask, number.name)
    for number, call in others.items():
        loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        for number in (*ends, *others):
            loop.remove_signal_handler(number)


def _has_terminal() -> bool:
    """Was this process started from one? Once it is gone nobody can tell."""
    return any(os.isatty(descriptor) for descriptor in (0, 1, 2))
