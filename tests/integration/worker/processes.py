"""Workers as processes, and what a test wants to know of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.waiting import PATIENCE_S, wait_until

APPS = Path(__file__).parent / "apps"
KEPT = ("PATH", "HOME", "PYTHONPATH")
"""What a worker gets of the environment of the tests; nothing of TIDEWORK_*."""


def is_alive(pid: int) -> bool:
    """Does the process exist, zombies not counted?"""
    return state_of(pid) not in ("", "Z", "X")


def state_of(pid: int) -> str:
    """The letter of /proc/PID/stat, '' for no process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]


def children_of(pid: int) -> list[int]:
    """Of any process."""
    found = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in listing.read_text().split()]
        except OSError:
            continue
    return sorted(found)


class WorkerProcess:
    """``python -m tidework.worker`` with JSON logs in a file."""

    def __init__(
        self,
        app: str,
        log: Path,
        settings: dict[str, Any],
        stdin: int = subprocess.DEVNULL,
        folder: Path = APPS,
        stdout: int | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self._log = log
        self.name = str(settings.get("worker_name", log.stem))
        given = {
            "app": app,
            "queue": ["jobs"],
            **({} if settings.get("async_slots") else {"slots": 1}),
            "log_format": "json",
            "log_level": "debug",
            "probe_port": 0,
            "lease_seconds": 3.0,
            "worker_name": log.stem,
            **settings,
        }
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment["PYTHONWARNINGS"] = "error"  # in the template and the children, too
        for name, value in given.items():
            text = json.dumps(value) if isinstance(value, list) else str(value)
            environment[f"TIDEWORK_{name.upper()}"] = text
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tidework.worker"],
                cwd=folder,
                env=environment,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=pass_fds,
            )
        self.pid = self.process.pid
        self._seen: set[int] = set()

    def lines(self) -> list[dict[str, Any]]:
        """Its log; lines that are not JSON have only a message."""
        found = []
        for line in self._log.read_text(errors="replace").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                found.append({"message": line})
        return found

    def events(self, event: str) -> list[dict[str, Any]]:
        """Lines of this event, or with this message where a job wrote them."""
        lines = self.lines()
        return [line for line in lines if event in (line.get("event"), line.get("message"))]

    def wait_event(self, event: str, count: int = 1) -> dict[str, Any]:
        """Wait until the event was logged ``count`` times; returns that line."""

        def look() -> list[dict[str, Any]]:
            found = self.events(event)
            return found if len(found) >= count else []

        return wait_until(look, event, story=self.text)[count - 1]

    def wait_started(self) -> WorkerProcess:
        """Wait until all its slots are there."""
        self.wait_event("worker_started")
        wait_until(lambda: "ok" in self.probe("/readyz")[1], "the worker is ready")
        return self

    def whole_text(self) -> str:
        """The log as it is, from its beginning."""
        return self._log.read_text(errors="replace")

    def text(self) -> str:
        """The end of the log, to be shown."""
        return self._log.read_text(errors="replace")[-6000:]

    def probe(self, path: str) -> tuple[int, str]:
        """Ask a probe."""
        port = self.wait_event("probes_opened")["port"]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name: str) -> float:
        """The sum over all series of a metric."""
        page = self.probe("/metrics")[1].splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in page
            if line.startswith((name + " ", name + "{"))
        )

    def template(self) -> int:
        """Pid of the template."""

        def look() -> int:
            found = [p for p in children_of(self.pid) if is_alive(p)]
            self._seen.update(found)
            return found[0] if len(found) == 1 else 0

        return wait_until(look, "one template")

    def children(self, count: int = 1) -> list[int]:
        """Pids of the children, once there are so many."""

        def look() -> list[int]:
            template = self.template()
            found = [p for p in children_of(template) if is_alive(p)]
            self._seen.update(found)
            return found if len(found) == count else []

        return wait_until(look, f"{count} children")

    def zombies(self) -> list[int]:
        """Ended processes that nobody reaped, below the worker."""
        found, look_at = [], [self.pid]
        while look_at:
            for pid in children_of(look_at.pop()):
                look_at.append(pid)
                if state_of(pid) == "Z":
                    found.append(pid)
        return found

    def wait_reaped(self) -> None:
        """Until nobody who ended is left unreaped: it takes a moment, and no longer."""
        wait_until(lambda: not self.zombies(), "nobody is left unreaped")

    def note(self, pid: int) -> None:
        """This process has to be gone at the end, too."""
        self._seen.add(pid)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def wait(self, seconds: float = PATIENCE_S) -> int:
        """Its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker does not end:\n{self.text()}") from None

    def end(self) -> None:
        """Make an end of it, however it is."""
        if self.process.poll() is None:
            self._seen.update(children_of(self.pid))
            for child in list(self._seen):
                self._seen.update(children_of(child))
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)

    def remains(self) -> list[int]:
        """Processes of it that still live; they are killed."""
        with suppress(AssertionError):
            wait_until(lambda: not any(map(is_alive, self._seen)), "all have ended", 5)
        found = [pid for pid in self._seen if is_alive(pid)]
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return found
