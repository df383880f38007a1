"""What a job of any system does, and how it counts itself. Standard library only.

Every job appends one record of 20 bytes to one file. O_APPEND makes the write whole, whatever
process or thread it comes from, so the size of the file is the number of jobs, and the cost
(about 2 us) is the same for every system. As a program it is the bare process that the systems
are compared with: ``python work.py NUMBER_OF_JOBS ROUNDS``.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import struct
import sys
import time

START = b"S"
END = b"E"
RECORD = struct.Struct("<cxxxIId")
"""Kind, number of the job, pid, seconds of the monotonic clock."""

_flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_file = os.open(os.environ.get("BENCHMARK_LEDGER", os.devnull), _flags, 0o600)


def note(kind: bytes, number: int) -> None:
    """Append a record."""
    os.write(_file, RECORD.pack(kind, number, os.getpid(), time.monotonic()))


def noop(number: int, text: str = "") -> None:  # noqa: ARG001 - text is there to be carried
    """Nothing but its record."""
    note(END, number)


def nap(number: int, seconds: float) -> None:
    """Wait, as for a network."""
    note(START, number)
    time.sleep(seconds)
    note(END, number)


async def nap_async(number: int, seconds: float) -> None:
    """The same on an event loop."""
    note(START, number)
    await asyncio.sleep(seconds)
    note(END, number)


def crash(number: int) -> None:
    """End the process as a fault in C code would, without a core dump."""
    note(START, number)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.string_at(0)


def burn(number: int, rounds: int) -> None:
    """Compute."""
    note(START, number)
    value = 1
    for _ in range(rounds):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    note(END, number)


if __name__ == "__main__":
    for index in range(int(sys.argv[1])):
        burn(index, int(sys.argv[2]))
