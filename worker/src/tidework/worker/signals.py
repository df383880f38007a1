"""Signals of the supervisor: the first SIGTERM or SIGINT asks to drain, the second to hurry."""

from __future__ import annotations

import asyncio
import logging
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
        """Ask to drain; the second time, to hand back at once."""
        if not self.asked.is_set():
            logger.info("%s: no more jobs are claimed, running ones may finish", why)
            self.asked.set()
        elif not self.hurried.is_set():
            logger.warning("%s again: running jobs are handed back", why)
            self.hurried.set()


@contextmanager
def handled(stop: StopRequest, on_child: Callable[[], None]) -> Iterator[None]:
    """Handle signals on the running loop. ``on_child``: some child process has ended."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.ask, number.name)
    loop.add_signal_handler(signal.SIGCHLD, on_child)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            loop.remove_signal_handler(number)
