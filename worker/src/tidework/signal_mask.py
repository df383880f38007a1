"""Signals that a parent has blocked: a child inherits that, and would never hear of them."""

from __future__ import annotations

import signal


def accept_signals() -> None:
    """Have every signal delivered to this process, and to those that it starts from now on.

    For programs, at their start, before they have threads. Without SIGCHLD a worker does not learn
    that a child has ended; without SIGTERM nothing ends in order.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
