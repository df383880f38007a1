"""Tasks with a block that is to be done once, sync and async."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

from tidework.app import Tidework
from tidework.model.current import current_job
from tidework.once_per_key import once

# Workers with an event loop refuse an application that declares sync tasks for their queue.
app = Tidework("charges", queue="by-name")


def note(folder: str, what: str) -> None:
    """Leave a mark of this attempt."""
    (Path(folder) / f"{what}.{current_job().id}.{current_job().attempt}").touch()


@app.task
def charge(folder: str, waits: bool = True) -> bool:
    """Charge when the test says so."""
    with once("charge", ttl=600) as first:
        if first:
            note(folder, "began")
            while waits and not (Path(folder) / "go").exists():
                time.sleep(0.005)
            note(folder, "charged")
    return first


@app.task
async def charge_async(folder: str, waits: bool = False) -> bool:
    async with once("charge", ttl=600) as first:
        if first:
            note(folder, "began")
            await asyncio.sleep(0)
            while waits and not (Path(folder) / "go").exists():
                await asyncio.sleep(0.005)
            note(folder, "charged")
    return first


@app.task
def charge_and_die(folder: str) -> None:
    """Its process ends in the middle of the block."""
    with once("charge", ttl=600):
        note(folder, "died")
        os.kill(os.getpid(), signal.SIGKILL)
