"""`tidework dev` as a child process: started, listened to, and always ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from tidework.dev.tether import command

STOP_WAIT_S = 30.0
KILL_WAIT_S = 10.0
LONGEST_LINE = 2**20
LAST_LINES = 15


class DevProcess:
    """A running `tidework dev`.

    It is a session of its own, so that Ctrl-C reaches the demonstration alone, which then ends dev
    in order; and it is tethered: if the demonstration is killed, dev is interrupted by the kernel.
    """

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @classmethod
    async def start(cls, manifest: Path, folder: Path, out: Path) -> Self:
        """Start it on the manifest.

        folder: of the server's data and the log; out: where the report goes
        """
        program = [sys.executable, "-m", "tidework", "dev", str(manifest)]
        program += ["--data-dir", str(folder / "data"), "--log-format", "json"]
        # Settings of whoever calls are not for this system, which brings its own server.
        env = {k: v for k, v in os.environ.items() if not k.startswith("TIDEWORK_")}
        env["STDLIB_INDEX_OUT"] = str(out)
        log = folder / "dev.log"
        with log.open("wb") as stream:
            process = await asyncio.create_subprocess_exec(
                *command(signal.SIGINT, program),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=stream,
                env=env,
                limit=LONGEST_LINE,
                start_new_session=True,
            )
        return cls(process, log)

    async def listen(self, tell: Callable[[Mapping[str, Any]], None]) -> int:
        """Hand on every event as it comes; returns the exit code once dev has ended."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                event = None
            if isinstance(event, dict):
                tell(event)
            else:  # what the application prints
                print(line.decode(errors="replace").rstrip())
        return await self._process.wait()

    def interrupt(self) -> None:
        """What Ctrl-C does to dev; a second time it does not wait for running jobs."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGINT)

    async def stop(self) -> int:
        """Interrupt it and wait; after STOP_WAIT_S it is killed. Returns the exit code."""
        self.interrupt()
        for seconds in (STOP_WAIT_S, KILL_WAIT_S):
            try:
                return await asyncio.wait_for(self._process.wait(), seconds)
            except TimeoutError:
                self._process.kill()
        return -signal.SIGKILL

    def last_words(self) -> str:
        """The end of its log."""
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LAST_LINES:])
