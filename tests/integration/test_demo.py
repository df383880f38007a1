"""The demonstration from end to end, as `make demo` starts it; and that it leaves nothing behind.

What it started is found by a mark in the environment, which every descendant inherits.
"""

from __future__ import annotations

import inspect
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.support.waiting import wait_until

PROGRAM = ROOT / "examples" / "stdlib-index" / "demo.py"
LIMIT_S = 240.0
"""For the demonstration to reach its end: the machine may have other things to do."""

END_S = 60.0
MARK = "STDLIB_INDEX_TEST"

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]


class Demo:
    """A demonstration that was started; ``out``: where its report goes."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.mark = secrets.token_hex(8)
        self._log = out.with_name("demo.log")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start it with its output in a file."""
        command = [sys.executable, str(PROGRAM), "--out", str(self.out), *arguments]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, MARK: self.mark, "TMPDIR": str(self.out.parent)},
                start_new_session=True,
            )
        return self.process

    @property
    def text(self) -> str:
        """What it printed so far."""
        return self._log.read_text("utf-8", errors="replace")

    def wait_until(self, holds: Callable[[], bool], seconds: float = LIMIT_S) -> None:
        """Wait for a condition, while it has to be running."""
        process = self.process
        assert process is not None

        def look() -> bool:
            assert process.poll() is None, self.text
            return holds()

        wait_until(look, inspect.getsource(holds).strip(), seconds, story=lambda: self.text)

    def descendants(self) -> dict[int, str]:
        """Every process that it started, itself included: pid -> command line."""
        wanted = f"{MARK}={self.mark}".encode()
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found[int(folder.name)] = line
        return found

    def wait_until_nothing_is_left(self) -> None:
        """Every process has ended, by itself."""
        wait_until(
            lambda: not self.descendants(),
            "nothing is left",
            END_S,
            story=lambda: f"{self.descendants()}\n{self.text}",
        )


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """Whatever the test finds, its processes are ended."""
    demo = Demo(tmp_path / "out")
    yield demo
    for pid in demo.descendants():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if demo.process is not None:
        demo.process.wait(timeout=END_S)


def test_one_cycle_is_shown_checked_and_reported(demo: Demo) -> None:
    code = demo.start("--limit", str(LIMIT_S)).wait(timeout=LIMIT_S + END_S)
    text = demo.text

    assert code == 0, text
    page = demo.out / "index.html"
    assert f"\nreport: {page}\n" in text
    summary = re.search(r"^([\d,]+) files = ([\d,]+) measured \+ (\d+) dead$", text, re.MULTILINE)
    assert summary is not None, text
    files, measured, dead = (int(number.replace(",", "")) for number in summary.groups())
    assert files == measured + dead
    assert dead >= 3
    for name in ("bracket", "encoding", "indentation"):
        assert f"  dead: broken/{name}.py:3: " in text
    assert re.search(r"^workers: 0 -> .*[1-9].* -> 0, in \d+ s$", text, re.MULTILINE)
    assert re.search(r" index: 0 -> \d workers?: \S", text), "no reason was shown"
    assert f"{files:,} files, one job each." in page.read_text("utf-8")
    demo.wait_until_nothing_is_left()
    assert "Traceback" not in text


def test_kept_it_stays_up_until_it_is_interrupted(demo: Demo) -> None:
    process = demo.start("--keep", "--limit", str(LIMIT_S))
    demo.wait_until(lambda: "Staying up until Ctrl-C. Redis: redis://127.0.0.1:" in demo.text)
    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=END_S) == 0, demo.text
    demo.wait_until_nothing_is_left()
    place = re.search(r"^data and log: (.+)$", demo.text, re.MULTILINE)
    assert place is not None
    kept = Path(place[1])
    assert (kept / "dev.log").is_file()
    assert any((kept / "data").iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_everything_in_order(demo: Demo, number: signal.Signals) -> None:
    process = demo.start()
    demo.wait_until(lambda: " index: 0 -> " in demo.text)
    process.send_signal(number)

    assert process.wait(timeout=END_S) == 130, demo.text
    assert "Traceback" not in demo.text
    demo.wait_until_nothing_is_left()


def test_killed_it_leaves_no_orphan(demo: Demo) -> None:
    process = demo.start()
    # itself, dev, the server, a worker: the mark is found in all of them
    demo.wait_until(lambda: " index: 0 -> " in demo.text and len(demo.descendants()) >= 4)
    process.kill()

    demo.wait_until_nothing_is_left()


def test_out_of_time_it_says_so_and_fails(demo: Demo) -> None:
    process = demo.start("--limit", "0.01")

    assert process.wait(timeout=END_S) == 1
    assert "FAILED: it did not reach its end within 0.01 s" in demo.text
    assert "data and log: " in demo.text
    demo.wait_until_nothing_is_left()
