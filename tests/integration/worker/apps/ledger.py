"""A task that writes down each of its runs: whatever Redis says, this is what happened."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tidework.app import Tidework
from tidework.model.current import current_job

app = Tidework("ledger", queue="jobs")


@app.task
def work(folder: str, until: str = "", seconds: float = 0.0) -> str:
    """Lasts so many seconds, and until there is a file of that name."""
    write_down(folder, "began")
    end = time.monotonic() + seconds
    while time.monotonic() < end or (until and not Path(folder, until).exists()):
        time.sleep(0.005)
    write_down(folder, "ended")
    return "done"


def write_down(folder: str, what: str) -> None:
    """One line, whole: the kernel puts appends of a few bytes one after the other."""
    place = os.open(Path(folder, "ledger"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(place, f"{what} {current_job().id}\n".encode())
    finally:
        os.close(place)
