"""A running `tidework dev`, as its user starts it, with its events read as they come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.process_tree import command_of, descendants_of, is_alive
from tests.support.waiting import wait_until

Event = dict[str, Any]


class DevProcess:
    """Started in ``folder`` with JSON events; every wait has a deadline and shows what was said."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.events: list[Event] = []
        self._seen = threading.Condition()
        self._log = folder / f"dev-{time.monotonic_ns()}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tidework", "dev", *arguments, "--log-format", "json"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={k: v for k, v in os.environ.items() if not k.startswith("TIDEWORK_")},
                start_new_session=True,
                text=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._seen:
                self.events.append(json.loads(line))
                self._seen.notify_all()

    @property
    def stderr(self) -> str:
        """What it and its workers logged so far."""
        return self._log.read_text(errors="replace")

    def find(self, event: str, **fields: Any) -> list[Event]:
        """Events of that name with those fields."""
        wanted = {"event": event, **fields}
        return [e for e in list(self.events) if wanted.items() <= e.items()]

    def wait_for(self, event: str, *, within: float = 40, count: int = 1, **fields: Any) -> Event:
        """The ``count``-th such event, waited for."""
        deadline = time.monotonic() + within
        with self._seen:
            while len(self.find(event, **fields)) < count:
                rest = deadline - time.monotonic()
                if rest <= 0 or (self.process.poll() is not None and not self._seen.wait(1)):
                    raise AssertionError(f"no event {event} {fields}:\n{self.story()}")
                self._seen.wait(min(rest, 1))
        return self.find(event, **fields)[count - 1]

    def wait_until(self, condition: Callable[[], bool], *, within: float = 40) -> None:
        """Look until the condition is true."""
        wait_until(condition, seconds=within, story=self.story)

    def story(self) -> str:
        """Everything said, for a failing test."""
        lines = [json.dumps(event) for event in self.events[-60:]]
        return "\n".join([*lines, "-- stderr --", self.stderr[-6000:]])

    def tree(self) -> list[int]:
        """Living descendants, parents first."""
        return descendants_of(self.process.pid)

    def server_pid(self) -> int:
        """Of the embedded server."""
        return next(pid for pid in self.tree() if "valkey-server" in command_of(pid))

    def supervisors(self) -> list[int]:
        """Pids of worker processes."""
        return [pid for pid in self.tree() if command_of(pid).endswith("-m tidework.worker")]

    def interrupt(self, *, within: float = 40) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=within)

    def end(self) -> None:
        """Whatever happened: nothing of it is left."""
        pids = [self.process.pid, *self.tree()]
        for pid in pids:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(timeout=20)
        self._reader.join(timeout=20)
        if self.process.stdout is not None:
            self.process.stdout.close()
