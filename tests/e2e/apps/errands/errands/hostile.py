"""Tasks that harm what they run in, besides those of tasks.py."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections import deque
from pathlib import Path
from typing import Any

from .tasks import app, place, write_down

MIB = 1 << 20
KEPT: list[bytes] = []

__all__ = ["app"]


@app.task
def hold(mib: int) -> dict[str, Any]:
    """Take memory and never give it back; tells the process that did."""
    KEPT.append(b"x" * (mib * MIB))
    return {"child": os.getpid(), "mib": len(KEPT[-1]) // MIB, **place()}


@app.task
def swell(most: int) -> None:
    """Take memory without end, 40 MiB a second; ``most``: MiB at which it gives up."""
    write_down("started")
    held = []
    for _ in range(most // 4):
        held.append(b"x" * (4 * MIB))
        time.sleep(0.1)


@app.task
def burst(mib: int) -> None:
    """Take memory faster than anybody looks: the kernel ends the whole container.

    So it is with control groups of version 2 (memory.oom.group, which the kubelet sets). Of
    version 1 the kernel ends this process alone: there another one makes up for it, and the
    supervisor and the template are stopped, lest they see that before they are ended themselves.
    """
    write_down("started")
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        end_all_with_me()
    held = b"x" * (mib * MIB)
    time.sleep(60)
    del held


def end_all_with_me() -> None:
    """Once this process has ended, every other one but the container's first is killed."""
    reads, writes = os.pipe()
    if os.fork() == 0:
        os.close(writes)
        os.read(reads, 1)
        os.kill(-1, signal.SIGKILL)
        os._exit(0)
    os.close(reads)
    template = os.getppid()
    supervisor = int(Path(f"/proc/{template}/stat").read_text().rpartition(")")[2].split()[1])
    for pid in (supervisor, template):
        os.kill(pid, signal.SIGSTOP)


@app.task
def leave(code: int) -> None:
    """End the process past the interpreter, as some C libraries do."""
    write_down("started")
    os._exit(code)


@app.task
def spin() -> None:
    """A C call that never ends and never gives the interpreter free."""
    write_down("started")
    deque(itertools.repeat(0), maxlen=0)
