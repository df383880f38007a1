"""Stacks of this process, written into a file in memory that the supervisor reads.

At ASK Python code writes them, while it holds the interpreter: what all threads do, the asyncio
tasks, and then END. Nothing can go wrong with that, but it needs the interpreter. At INSIST, for
processes that have not answered, faulthandler writes them from within the signal handler, in C,
also while a C call holds the interpreter; a text without END tells of it.
(Not both at one signal: chained to Python's, its handler overflows its stack if signals come fast.)
"""

from __future__ import annotations

import asyncio
import faulthandler
import fcntl
import os
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

ASK = signal.SIGWINCH
"""Ignored by whoever has no use for it, and children have no terminal: it disturbs nobody."""
INSIST = signal.SIGUSR1
END = "end of stacks\n"
MOST_TASKS = 50
TASK_FRAMES = 30
MOST_AWAITED = 1000
_FRAME = ("cr_frame", "gi_frame", "ag_frame")
_AWAITED = ("cr_await", "gi_yieldfrom", "ag_await")


def open_file() -> int:
    """A descriptor of a new file that has no name. Raises OSError."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("stacks")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    # Whoever empties the file does not move the place where others go on writing.
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
    return descriptor


def answer_signals(descriptor: int) -> None:
    """Write the stacks into this file at ASK and INSIST, whatever was done at them before.

    The file has to stay open. A task that takes one of the signals for itself gets it.
    """
    answer(ASK, descriptor)
    faulthandler.unregister(INSIST)
    faulthandler.register(INSIST, descriptor, all_threads=True, chain=False)


def answer(number: signal.Signals, descriptor: int) -> None:
    """Write the stacks into this file at a signal, once the interpreter is free for it."""

    def tell(_number: int, _frame: FrameType | None) -> None:
        write(descriptor)

    signal.signal(number, tell)


def write(descriptor: int) -> None:
    """Write the stacks of this process now; raises nothing."""
    # It may run between any two steps of a task, which nothing of it must reach.
    try:
        faulthandler.dump_traceback(descriptor, all_threads=True)
        text = tasks_text()
    except Exception as error:  # noqa: BLE001 - see above
        text = f"this is not all: {error!r}\n"
    with suppress(OSError):
        os.write(descriptor, (text + END).encode(errors="backslashreplace"))


def text_now(most: int) -> str:
    """What the threads of this process do, seen from one of them; see ``read``."""
    descriptor = open_file()
    try:
        faulthandler.dump_traceback(descriptor, all_threads=True)
        return read(descriptor, most)
    finally:
        os.close(descriptor)


def tasks_text() -> str:
    """The asyncio tasks of the loop that runs in this thread, '' if none does."""
    try:
        tasks = list(asyncio.all_tasks())
    except RuntimeError:  # no running event loop
        return ""
    lines = []
    for task in sorted(tasks, key=lambda task: task.get_name())[:MOST_TASKS]:
        lines.append(f"Asyncio task {task.get_name()} (most recent call first):")
        lines += reversed(deque(_frames(task.get_coro()), maxlen=TASK_FRAMES))
    if len(tasks) > MOST_TASKS:
        lines.append(f"... and {len(tasks) - MOST_TASKS} asyncio tasks more")
    return "".join(f"{line}\n" for line in lines)


def _frames(awaited: Any) -> Iterator[str]:
    """A coroutine, and what it awaits: asyncio itself tells of the first one alone."""
    for _ in range(MOST_AWAITED):
        if awaited is None:
            return
        frame, further = (_attribute(awaited, names) for names in (_FRAME, _AWAITED))
        if frame is not None:
            code = frame.f_code
            yield f'  File "{code.co_filename}", line {frame.f_lineno} in {code.co_name}'
        awaited = further


def _attribute(awaited: Any, names: Sequence[str]) -> Any:
    return next((getattr(awaited, name) for name in names if hasattr(awaited, name)), None)


def empty(descriptor: int) -> None:
    """Forget what was written."""
    os.ftruncate(descriptor, 0)


def read(descriptor: int, most: int) -> str:
    """What was written, up to ``most`` bytes: its first half and its last if there is more."""
    size = os.fstat(descriptor).st_size
    if size <= most:
        return os.pread(descriptor, most, 0).decode(errors="replace")
    half = most // 2
    head, tail = os.pread(descriptor, half, 0), os.pread(descriptor, half, size - half)
    left_out = f"\n[... {size - 2 * half} bytes left out ...]\n"
    return head.decode(errors="replace") + left_out + tail.decode(errors="replace")


def has_ended(descriptor: int) -> bool:
    """Is everything there?"""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, len(END), max(0, size - len(END))) == END.encode()
