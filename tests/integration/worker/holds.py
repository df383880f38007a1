"""Async jobs that say that they began, and end when the test says so (apps/loops.py)."""

from __future__ import annotations

from pathlib import Path

from tests.integration.worker.jobs import Jobs
from tests.support.waiting import wait_until


class Holds:
    """Jobs that run until the test lets them end."""

    def __init__(self, jobs: Jobs, folder: Path) -> None:
        self._jobs = jobs
        self._folder = folder

    def put(self, *names: str, task: str = "hold") -> list[str]:
        return self._jobs.put_many(task, [{"path": str(self._folder / name)} for name in names])

    def pids(self, *names: str) -> list[int]:
        """Wait until they run; forgets that they began."""
        found = []
        for name in names:
            path = self._folder / f"{name}.began"
            wait_until(path.exists, f"{name} runs")
            found.append(int(path.read_text().split()[0]))
            path.unlink()
        return found

    def began(self, name: str) -> bool:
        return (self._folder / f"{name}.began").exists()

    def let_end(self, *names: str) -> None:
        for name in names:
            (self._folder / f"{name}.go").touch()
