"""Permits, as a child takes them: whoever reads one from the pipe owns the job of its number."""

from __future__ import annotations

import os

from tidework.worker import frames


class Permits:
    """Read end of the pipe of permits, non-blocking."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._last = 0

    def take(self, number: int) -> bool:
        """Take the job's permit. False: the supervisor took it back, and the job with it."""
        while self._last < number:
            try:
                permit = os.read(self._descriptor, frames.PERMIT.size)
            except BlockingIOError:
                return False
            if not permit:
                return False
            (self._last,) = frames.PERMIT.unpack(permit)
        # A higher number is the permit of a later job: this one's was taken back.
        return self._last == number
