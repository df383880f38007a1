"""Starts the embedded server again when it has ended without being told to.

The pauses grow while it does not come up, or ends again at once, as with a worker that crashes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from tidework.dev.console import Console
from tidework.dev.valkey import EmbeddedValkey
from tidework.errors import ConfigurationError

LOOK_EVERY = timedelta(seconds=0.2)
FIRST_WAIT = timedelta(seconds=0.5)
LONGEST_WAIT = timedelta(seconds=30)
STEADY_S = 10.0
"""A server that ran for so long was not part of a row of failures."""


class ServerGuard:
    """``tick`` is for a Loop. now: seconds of a monotonic clock"""

    def __init__(
        self, server: EmbeddedValkey, console: Console, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._server = server
        self._console = console
        self._now = now
        self._failures = 0
        self._not_before = 0.0
        self._up_since: float | None = now()

    async def tick(self) -> timedelta:
        """Look, start it if it has ended; the wait until the next look."""
        cause = self._server.exit_cause()
        if cause is None:
            return LOOK_EVERY
        now = self._now()
        if self._up_since is not None and now - self._up_since > STEADY_S:
            self._failures, self._not_before = 0, 0.0
        self._up_since = None
        if now < self._not_before:
            return timedelta(seconds=self._not_before - now)
        growth: int = 2 ** min(self._failures, 10)
        wait = min(LONGEST_WAIT, FIRST_WAIT * growth)
        self._failures += 1
        try:
            await self._server.start()
        except ConfigurationError as error:
            self._not_before = self._now() + wait.total_seconds()
            self._console.tell("server_down", error=str(error), wait=wait.total_seconds())
            return wait
        self._up_since = self._now()
        self._not_before = self._up_since + wait.total_seconds()
        self._console.tell("server_restarted", cause=cause)
        return LOOK_EVERY
