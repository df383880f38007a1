"""Tasks that behave, misbehave, and leave marks for a test to see."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from tidework.app import Tidework
from tidework.errors import SoftTimeout
from tidework.model.current import current_job
from tidework.model.endings import Bury

app = Tidework("hostile", queue="jobs")


def mark(path: str, text: str = "") -> None:
    """Leave a mark that appears whole."""
    draft = Path(f"{path}.{os.getpid()}.draft")
    draft.write_text(text or str(os.getpid()))
    draft.rename(path)


@app.task
def add(a: int, b: int) -> int:
    return a + b


@app.task
def whoami() -> dict[str, int]:
    return {"pid": os.getpid(), "attempt": current_job().attempt}


@app.task(max_attempts=2, delays=[0.05])
def fail(reason: str) -> None:
    raise ValueError(reason)


@app.task
def bury(reason: str) -> None:
    raise Bury(reason)


@app.task
def read_null() -> None:
    ctypes.string_at(0)


@app.task
def kill_myself(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


@app.task
def leave(code: int) -> None:
    os._exit(code)


@app.task
def exit_politely(code: int) -> None:
    sys.exit(code)


@app.task
def close_everything() -> None:
    os.closerange(3, 10_000)
    time.sleep(60)


@app.task(timeout=0.4, max_attempts=1)
def hang(path: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    mark(path)
    while True:
        time.sleep(60)


@app.task(soft_timeout=0.3, timeout=60, max_attempts=1)
def end_in_order(path: str) -> None:
    try:
        time.sleep(60)
    finally:
        mark(path, str(os.getpid()))


@app.task(soft_timeout=0.3, timeout=1, max_attempts=1)
def swallow_soft_timeout(path: str) -> None:
    while True:
        try:
            time.sleep(60)
        except SoftTimeout:
            mark(path)


@app.task
def hold(path: str, seconds: float = 60.0) -> str:
    """Say that it began; end when the test says so."""
    mark(f"{path}.began", f"{os.getpid()} {current_job().attempt}")
    deadline = time.monotonic() + seconds
    while not Path(f"{path}.go").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    return "held"


@app.task(max_attempts=1)
def hold_interpreter(path: str) -> None:
    """A call of C code that never ends and never looks for signals."""
    mark(path)
    deque(itertools.repeat(0), maxlen=0)


@app.task
def take_signals(path: str, numbers: list[int]) -> None:
    """A job with a use of its own for signals that have stacks written."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
    hold(path)


@app.task
def come_back_twice() -> int:
    """A fork without an end of its own."""
    return os.fork()


@app.task
def grow(mib: int) -> None:
    globals()["hoard"] = bytearray(os.urandom(1024)) * (1024 * mib)


@app.task
def leave_orphan(path: str) -> None:
    """A process that leaves the session of its job and outlives it."""
    code = f"import os,time; open({path!r},'w').write(str(os.getpid())); time.sleep(300)"
    command = [sys.executable, "-c", code]
    starter = (
        "import subprocess,sys;"
        f"subprocess.Popen({command!r}, start_new_session=True, stdin=-3, stdout=-3, stderr=-3)"
    )
    subprocess.run([sys.executable, "-c", starter], check=True)
    while not Path(path).exists():
        time.sleep(0.005)


@app.task
def start_program(path: str) -> None:
    """A child of the job, in its process group; the job never ends."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    mark(path, str(child.pid))
    child.wait()
