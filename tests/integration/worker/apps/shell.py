"""Tasks that are commands: one program that does whatever its params say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from tidework.app import Tidework

app = Tidework("shell", queue="jobs")
PROGRAM = [sys.executable, str(Path(__file__).with_name("misdeeds.py"))]


class Order(BaseModel):
    """Params of a command with a model."""

    size: Literal["small", "large"] = "small"
    count: int


app.command("act", PROGRAM, max_attempts=2, delays=[0.05], env={"MISDEEDS": "yes"})
app.command("act_in_time", PROGRAM, timeout=0.5, max_attempts=1)
app.command("order", PROGRAM, params=Order)
app.command("quick", ["true"])
app.command("missing", ["no-such-program"], max_attempts=1)
app.command("later", ["./later"], cwd="..", max_attempts=1)


@app.task
def whoami() -> int:
    """The pid of the child."""
    import os

    return os.getpid()
