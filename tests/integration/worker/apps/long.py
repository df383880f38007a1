"""Tasks that take long: they say how far they are, go on where they stood, and hear a cancel."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from tidework import CancelRequested, Tidework, checkpoint, current_job, progress

# Workers with an event loop refuse an application that declares sync tasks for their queue.
app = Tidework("long", queue="by-name")


def note(folder: str, line: str) -> None:
    """A line of the folder's diary, in one write."""
    descriptor = os.open(Path(folder) / "diary", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def may_pass(folder: str, item: int) -> bool:
    """The test says so for all up to an item."""
    gate = Path(folder) / "gate"
    return gate.exists() and item <= int(gate.read_text() or 0)


def wait_for(folder: str, item: int) -> None:
    note(folder, f"began {item}")
    while not may_pass(folder, item):
        time.sleep(0.005)
    note(folder, f"done {item}")


async def wait_for_async(folder: str, item: int) -> None:
    note(folder, f"began {item}")
    while not may_pass(folder, item):
        await asyncio.sleep(0.005)
    note(folder, f"done {item}")


@app.task(delays=[0.01])
def walk(folder: str, count: int, name: str = "") -> int:
    for item in checkpoint(range(1, count + 1), key=lambda item: item, name=name):
        wait_for(folder, item)
        progress(item, count, "items")
    return count


@app.task(delays=[0.01])
async def walk_async(folder: str, count: int) -> int:
    async def rows_after(last: int | None) -> AsyncIterator[int]:
        for row in range((last or 0) + 1, count + 1):
            await asyncio.sleep(0)
            yield row

    async for item in checkpoint(rows_after, key=lambda item: item):
        await wait_for_async(folder, item)
        progress(item, count, "items")
    return count


@app.task(delays=[0.01])
def walk_twice(folder: str) -> None:
    """Two checkpoints, one after the other."""
    for item in checkpoint([1, 2], name="first"):
        wait_for(folder, item)
    for item in checkpoint([3, 4], name="second"):
        wait_for(folder, item)


@app.task
def tell(folder: str, count: int) -> int:
    """Progress for every item, and never a wait for anybody."""
    for item in range(1, count + 1):
        progress(item, count, "items")
        if not item % 1000:
            note(folder, f"done {item}")
    while not may_pass(folder, count):
        progress(count, count, "waits")
        time.sleep(0.005)
    return count


@app.task
def tidy(folder: str) -> None:
    """Ends in order when it is cancelled."""
    note(folder, f"began {os.getpid()}")
    try:
        time.sleep(60)
    except CancelRequested:
        note(folder, f"told {current_job().cancel_requested}")
        raise
    finally:
        note(folder, "cleaned up")


@app.task
async def tidy_async(folder: str) -> None:
    note(folder, f"began {os.getpid()}")
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.01)
        note(folder, "cleaned up")


@app.task
def swallow(folder: str) -> None:
    """It is told, and goes on."""
    note(folder, f"began {os.getpid()}")
    while True:
        try:
            time.sleep(60)
        except BaseException as error:
            note(folder, f"swallowed {type(error).__name__}")


@app.task
async def swallow_async(folder: str) -> None:
    note(folder, f"began {os.getpid()}")
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException as error:
            note(folder, f"swallowed {type(error).__name__}")


@app.task
def leave_program(folder: str) -> None:
    """A program that would outlive its job."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    note(folder, f"began {child.pid}")
    child.wait()


@app.task
def take_the_signal(folder: str) -> None:
    """A job with a use of its own for the signal that has its process read its orders."""
    signal.signal(signal.SIGURG, signal.SIG_DFL)
    note(folder, f"began {os.getpid()}")
    time.sleep(60)


script = """
trap 'echo cleaned up >> "$FOLDER/diary"; exit 3' TERM
echo "began $$" >> "$FOLDER/diary"
while :; do sleep 0.02; done
"""
deaf = """
trap '' TERM
echo "began $$" >> "$FOLDER/diary"
while :; do sleep 0.02; done
"""


def command(name: str, text: str) -> None:
    read = 'FOLDER=$(sed -n \'s/.*"folder": *"\\([^"]*\\)".*/\\1/p\')\n'
    app.command(name, ["sh", "-c", read + text])


command("tidy_command", script)
command("deaf_command", deaf)
