"""Async tasks that behave and misbehave, several at once on one event loop."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from contextvars import ContextVar
from pathlib import Path

from tidework.app import Tidework
from tidework.errors import SoftTimeout
from tidework.model.current import current_job

app = Tidework("loops", queue="jobs")
seen: ContextVar[str] = ContextVar("seen", default="")


def mark(path: str, text: str = "") -> None:
    """Leave a mark that appears whole."""
    draft = Path(f"{path}.{os.getpid()}.draft")
    draft.write_text(text or str(os.getpid()))
    draft.rename(path)


@app.task
async def hold(path: str) -> str:
    """Say that it began; end when the test says so."""
    mark(f"{path}.began", f"{os.getpid()} {current_job().attempt}")
    while not Path(f"{path}.go").exists():
        await asyncio.sleep(0.005)
    return "held"


@app.task(queue="with-slots")
def add(a: int, b: int) -> int:
    """For another queue: on an event loop it would block the others."""
    return a + b


@app.task
async def whoami() -> dict[str, str | int]:
    await asyncio.sleep(0)
    return {"pid": os.getpid(), "id": current_job().id}


@app.task
async def read_null() -> None:
    await asyncio.sleep(0)
    ctypes.string_at(0)


@app.task(timeout=0.4, max_attempts=1)
async def block(path: str) -> None:
    mark(path)
    time.sleep(60)


@app.task(timeout=0.4, max_attempts=1)
async def stubborn(path: str) -> None:
    """It is told to stop and goes on."""
    mark(path)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            mark(f"{path}.told")


@app.task(timeout=0.4, max_attempts=1)
async def endless(path: str) -> None:
    """It ends in order when it is told to stop."""
    try:
        await asyncio.sleep(60)
    finally:
        mark(path)


@app.task(soft_timeout=0.3, timeout=60, max_attempts=1)
async def end_in_order(path: str) -> None:
    try:
        await asyncio.sleep(60)
    except SoftTimeout:
        await asyncio.sleep(0.01)
        mark(path)
        raise


@app.task(max_attempts=1)
async def fail(kind: str) -> None:
    await asyncio.sleep(0)
    raise {
        "value": ValueError,
        "exit": SystemExit,
        "interrupt": KeyboardInterrupt,
        "cancelled": asyncio.CancelledError,
    }[kind]("on purpose")


@app.task
async def leave_a_task_that_exits() -> str:
    async def leave() -> None:
        raise SystemExit(3)

    task = asyncio.create_task(leave())
    await asyncio.sleep(0.05)
    return "went on" if task.done() else "did not run"


@app.task
async def remember(value: str) -> list[str]:
    """What it finds, sees after its own change, and after others had their turn."""
    found = seen.get()
    seen.set(value)
    now = seen.get()
    await asyncio.sleep(0.02)
    return [found, now, seen.get()]


@app.task(max_attempts=1)
async def return_much() -> str:
    return "x" * (2 * 1024 * 1024)


@app.task
async def fork() -> int:
    """A fork without an end of its own."""
    return os.fork()


@app.task
async def swell(most: int) -> None:
    """Take 4 MiB more again and again, up to ``most`` MiB for the sake of the machine."""
    taken: list[bytes] = []
    while len(taken) * 4 < most:
        taken.append(os.urandom(1 << 22))
        await asyncio.sleep(0.01)
    await asyncio.sleep(60)


def _mark_attempt(path: str) -> None:
    """``.1`` on the loop, ``.2`` when it was lost."""
    number = 2 if Path(f"{path}.1").exists() else 1
    mark(f"{path}.{number}")


@app.task(timeout=1, max_attempts=1)
async def endless_always(path: str) -> None:
    _mark_attempt(path)
    await asyncio.sleep(60)


@app.task(timeout=1, max_attempts=1)
async def block_always(path: str) -> None:
    _mark_attempt(path)
    time.sleep(60)


@app.task(timeout=1, max_attempts=1)
async def stubborn_always(path: str) -> None:
    _mark_attempt(path)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue
