"""More tasks that misbehave, added to those of hostile.py."""

from __future__ import annotations

import ctypes
import itertools
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Never

from pydantic import AfterValidator

from tidework.model.endings import Retry

if TYPE_CHECKING:
    from tests.integration.worker.apps.hostile import app, mark
else:
    from hostile import app, mark

FLOOD = 50_000_000


class Outrage(BaseException):
    """No Exception."""


class Unspeakable(Exception):  # noqa: N818 - as tasks are
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def _spring(_given: int) -> int:
    raise KeyboardInterrupt


class Unstoppable(Exception):  # noqa: N818 - as tasks are
    """Whoever asks for its text is to end."""

    def __str__(self) -> str:
        raise KeyboardInterrupt

    __repr__ = __str__


class Secretive(Unstoppable):
    """Neither the text nor what hinders it can be had."""

    def __str__(self) -> str:
        raise Unstoppable


class Deceitful(Retry):
    """What it asks for cannot be had."""

    @property
    def delay(self) -> timedelta:
        raise SystemExit(3)

    @delay.setter
    def delay(self, _delay: timedelta | None) -> None: ...


@app.task(timeout=0.4, max_attempts=1)
def spin_in_c(path: str) -> None:
    """A C call that never ends and never gives the interpreter free."""
    mark(path)
    deque(itertools.repeat(0), maxlen=0)


@app.task(timeout=0.4, max_attempts=1)
def spin_in_python(path: str) -> None:
    mark(path)
    sys.setswitchinterval(1000)
    while True:
        pass


@app.task(timeout=0.4, max_attempts=1)
def sleep_deaf(path: str) -> None:
    """A C call that sleeps with the interpreter, every signal blocked."""
    mark(path)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(300)


@app.task(timeout=0.4, max_attempts=1)
def stop_myself(path: str) -> None:
    mark(path)
    os.kill(os.getpid(), signal.SIGSTOP)


@app.task(timeout=0.4, max_attempts=1)
def wait_for_deaf_threads(path: str) -> None:
    mark(path)
    thread = threading.Thread(target=time.sleep, args=(300,))
    thread.start()
    thread.join()


@app.task
def kill_my_group() -> None:
    os.killpg(0, signal.SIGKILL)


@app.task
def scribble() -> None:
    """Nonsense into every descriptor."""
    for number in range(3, 64):
        try:
            os.write(number, b"\xff" * 64)
        except OSError:
            continue
    time.sleep(60)


@app.task(max_attempts=1)
def raise_odd(kind: str) -> None:
    known: dict[str, BaseException] = {
        "outrage": Outrage("no exception"),
        "interrupt": KeyboardInterrupt(),
        "exit": SystemExit("not now"),
        "generator": GeneratorExit(),
        "unspeakable": Unspeakable(),
        "unstoppable": Unstoppable(),
        "secretive": Secretive(),
        "deceitful": Deceitful(),
        "long": ValueError("x" * FLOOD),
        "memory": MemoryError(),
        "bytes": ValueError(os.fsdecode(b"caf\xe9.txt")),
    }
    raise known[kind]


class Trap(dict[str, int]):
    """A result whose reader is to end."""

    def items(self) -> Never:
        raise KeyboardInterrupt


@app.task(max_attempts=1)
def return_trap() -> dict[str, int]:
    return Trap(a=1)


@app.task(max_attempts=1)
def take_trap(trap: Annotated[int, AfterValidator(_spring)]) -> int:
    return trap


@app.task(max_attempts=1)
def recurse(depth: int = 0) -> int:
    return recurse.function(depth + 1) + 1


@app.task(max_attempts=1)
def return_much() -> str:
    return "x" * FLOOD


@app.task(max_attempts=1)
def write_on_a_full_disk() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        full.write(b"x")


@app.task(max_attempts=1)
def write_beyond_the_limit(path: str) -> None:
    """Until the system says no, which it does at a MiB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with Path(path).open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 65536)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@app.task
def flood() -> int:
    line = "x" * 99
    for _ in range(FLOOD // 100):
        print(line)
    sys.stdout.flush()
    return os.getpid()


@app.task(timeout=1, max_attempts=1)
def flood_in_vain() -> None:
    while True:
        print("x" * 99)


@app.task
def leave_threads() -> int:
    """Of both kinds; none of them ends."""
    for daemon in (True, False):
        threading.Thread(target=time.sleep, args=(300,), daemon=daemon).start()
    return os.getpid()


@app.task(timeout=1, max_attempts=1)
def fork_twice_and_hang(path: str) -> None:
    """A daemon in a session of its own, which ignores signals; then the job hangs."""
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        f"open({path + '.draft'!r}, 'w').write(str(os.getpid()))\n"
        f"os.rename({path + '.draft'!r}, {path!r})\n"
        "time.sleep(300)\n"
    )
    subprocess.Popen([sys.executable, "-c", code]).wait()
    time.sleep(60)


@app.task
def leave_zombies(count: int) -> int:
    """Processes whose parent is gone, and which end at once: nobody knows them any more."""
    for _ in range(count):
        middle = os.fork()
        if not middle:
            os.fork()
            os._exit(0)
        os.waitpid(middle, 0)
    return os.getpid()


@app.task
def swell(most: int) -> None:
    """Take 4 MiB more again and again, up to ``most`` MiB for the sake of the machine."""
    taken: list[bytes] = []
    while len(taken) * 4 < most:
        taken.append(os.urandom(1 << 22))
        time.sleep(0.01)
    time.sleep(60)


@app.task
def swell_in_a_program(most: int) -> None:
    code = (
        "import os, time\n"
        "x = []\n"
        f"while len(x) < {most // 4}:\n"
        "    x.append(os.urandom(1 << 22)); time.sleep(0.01)\n"
        "time.sleep(60)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@app.task
def be_large(path: str, mib: int) -> str:
    """Large from the start, and no more after that; end when the test says so."""
    held = os.urandom(mib << 20)
    mark(f"{path}.began")
    while not Path(f"{path}.go").exists():
        time.sleep(0.01)
    return f"held {len(held) >> 20}"
