"""Samples every Python process that is started with this folder on its path.

SIGPROF comes after each 4 ms of CPU time (a tick of the kernel) and notes the stack of the main
thread, C functions as part of the Python line that called them. It costs about half a percent and,
unlike a tracer, does not make small functions look dear. Forked processes begin anew; what was
noted is written to BENCHMARK_PROFILE/PID.json when the process ends, by os._exit as well.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

INTERVAL_S = 0.001
FOLDER = os.environ.get("BENCHMARK_PROFILE")
samples: list[tuple[float, list[str], int]] = []
forked: list[int] = []
exit_at_once = os._exit


def note(_number: int, frame: FrameType | None) -> None:
    """Note when, the functions from the innermost outwards, and the innermost line."""
    line = frame.f_lineno if frame else 0
    stack = []
    while frame is not None:
        code = frame.f_code
        stack.append(f"{'/'.join(code.co_filename.split('/')[-2:])}:{code.co_qualname}")
        frame = frame.f_back
    samples.append((time.monotonic(), stack, line))


def begin() -> None:
    """Sample from now on."""
    samples.clear()
    signal.signal(signal.SIGPROF, note)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)


def begin_forked() -> None:
    """Timers are not inherited; the forks that led here are."""
    forked.append(os.getpid())
    begin()


def write() -> None:
    """Write what was noted."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    document = {"command": sys.orig_argv, "forks": len(forked), "samples": samples}
    (Path(FOLDER or ".") / f"{os.getpid()}.json").write_text(json.dumps(document))


def write_and_exit(code: int) -> NoReturn:
    """As os._exit, which leaves out exit handlers."""
    write()
    exit_at_once(code)


if FOLDER:
    os.register_at_fork(after_in_child=begin_forked)
    os._exit = write_and_exit  # type: ignore[assignment]
    atexit.register(write)
    begin()
