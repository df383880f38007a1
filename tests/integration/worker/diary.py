"""What the tasks of apps/long.py wrote down, and the gate that lets them pass."""

from __future__ import annotations

from pathlib import Path

from tests.support.waiting import wait_until


class Diary:
    """In ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self._folder = folder

    def lines(self, what: str = "") -> list[str]:
        """In order; of one kind what comes after it."""
        path = self._folder / "diary"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.removeprefix(f"{what} ") for line in lines if line.startswith(what)]

    def done(self) -> list[int]:
        """Items that were done, in order."""
        return [int(item) for item in self.lines("done")]

    def let_pass(self, item: int) -> None:
        """All items up to this one may be done."""
        draft = self._folder / "gate.draft"
        draft.write_text(str(item))
        draft.rename(self._folder / "gate")

    def wait(self, line: str, count: int = 1) -> None:
        """Until it is there so often."""
        wait_until(
            lambda: self.lines().count(line) >= count, f"{count} times {line!r} in the diary"
        )

    def wait_began(self) -> int:
        """The number that the task began with: its process, mostly."""
        return int(wait_until(lambda: self.lines("began"), "the task began")[0])
