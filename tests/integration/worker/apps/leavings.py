"""Tasks that leave their process changed, and what the next job finds of it."""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import stat
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.integration.worker.apps.hostile import app, mark
else:
    from hostile import app, mark

kept: list[Any] = []
spoilt: list[bool] = []


@app.task
def leave_changed(kind: str) -> dict[str, Any]:
    """What it found."""
    found = _state()
    match kind:
        case "working directory":
            os.chdir("/")
        case "umask":
            os.umask(0o123)
        case "environment":
            os.environ["PATH"] = "/nowhere"
            os.environ["LEFT_BY_A_JOB"] = "1"
            del os.environ["HOME"]
        case "handlers":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        case "blocked signals":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGALRM})
        case "timer":
            signal.setitimer(signal.ITIMER_REAL, 0.2)
        case "limit":
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (8, hard))
        case "several":
            os.chdir("/")
            os.umask(0)
    return found


@app.task
async def leave_changed_async(kind: str) -> dict[str, Any]:
    return leave_changed.function(kind)


@app.task
def leave_open() -> int:
    """All descriptors that it may have, and one gap at the bottom."""
    try:
        while True:
            kept.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        os.close(kept.pop(0))
    return os.getpid()


@app.task
def leave_some(files: int, threads: int) -> int:
    """What a pool keeps for the next job."""
    if not kept:
        kept.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(files))
        for _ in range(threads):
            threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
    return os.getpid()


@app.task
def leave_redirected(path: str) -> int:
    with Path(path).open("wb") as file:
        os.dup2(file.fileno(), 1)
    return os.getpid()


@app.task
async def leave_open_async() -> int:
    return leave_open.function()


@app.task
def find() -> dict[str, Any]:
    return _state()


@app.task
async def find_async() -> dict[str, Any]:
    return _state()


@app.task(max_attempts=1)
def spoil() -> None:
    """From now on each job of this task fails at once in this process."""
    spoilt.append(True)


@app.task(max_attempts=10, delays=[0.01])
def work_unless_spoilt() -> int:
    if spoilt:
        raise RuntimeError("spoilt")
    return os.getpid()


@app.task(max_attempts=1)
def read_pipes(seconds: float) -> int:
    """All that its process is sent meanwhile."""
    mine = os.getpid()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for number in range(3, 32):
            if is_readable(number):
                os.read(number, 65536)
    return mine


@app.task
async def read_pipes_async(path: str) -> None:
    mark(path)
    read_pipes.function(0.3)


def is_readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    mode = os.fstat(descriptor).st_mode if poll.poll(0) == [(descriptor, select.POLLIN)] else 0
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)


def _state() -> dict[str, Any]:
    umask = os.umask(0o77)
    os.umask(umask)
    with open(os.devnull):  # noqa: PTH123 - one can be opened
        pass
    handlers = [str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGALRM)]
    return {
        "pid": os.getpid(),
        "state": [
            str(Path.cwd()),
            umask,
            sorted(os.environ.items()),
            ctypes.CDLL(None).getenv(b"LEFT_BY_A_JOB"),
            handlers,
            sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            resource.getrlimit(resource.RLIMIT_NOFILE),
            signal.getitimer(signal.ITIMER_REAL)[0] > 0,
        ],
    }
