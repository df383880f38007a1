"""Starts a program that ends when its parent does: `python tether.py SIGNAL PARENT PROGRAM...`.

Run as a file, not as a module, so that it imports nothing of ours and starts in milliseconds.

A server that is not ours cannot watch its parent. The kernel does it (PR_SET_PDEATHSIG, Linux; it
survives exec and is bound to the parent's thread, so start from the main one). Elsewhere the
program is simply executed; its owner then stops it in order, but not when killed itself.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tether(number: int, parent: int) -> None:
    """Have the kernel send us ``number`` when ``parent`` dies; end now if it already has."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)


def command(number: signal.Signals, program: list[str]) -> list[str]:
    """The command line that starts ``program`` tethered to the calling process."""
    me = [sys.executable, "-ES", __file__, str(int(number)), str(os.getpid())]
    return me + program


def main(argv: list[str]) -> None:
    """SIGNAL PARENT PROGRAM ARGUMENT..."""
    tether(int(argv[0]), int(argv[1]))
    os.execv(argv[2], argv[2:])  # noqa: S606 - without a shell, as it should be


if __name__ == "__main__":
    main(sys.argv[1:])
