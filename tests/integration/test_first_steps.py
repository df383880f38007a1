"""The first steps that README.md and docs/getting-started.md describe, taken word for word."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.dev_process import DevProcess

pytestmark = pytest.mark.timeout(150)

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w.]+\.(?:py|yaml))`")
PORT = "6390"


class Block(NamedTuple):
    """A block of code: its language, its text, and the file that the sentence before it names."""

    kind: str
    text: str
    file: str | None
    appended: bool


def blocks_of(page: str) -> list[Block]:
    """All blocks of the page in their order."""
    text = (ROOT / page).read_text("utf-8")
    found, end = [], 0
    for match in BLOCK.finditer(text):
        before = text[end : match.start()].rstrip().rsplit("\n\n", 1)[-1]
        file = FILE.search(before) if match[1] in {"python", "yaml"} else None
        appended = before.startswith("Append")
        found.append(Block(match[1], match[2], file[1] if file else None, appended))
        end = match.end()
    return found


class Reader:
    """Somebody who does what a page says, in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])

    def save(self, block: Block) -> None:
        """Write the file that the page asks for."""
        assert block.file is not None, f"no sentence says where this goes:\n{block.text}"
        with (self.folder / block.file).open("a" if block.appended else "w") as file:
            file.write(block.text)

    def run(self, commands: str) -> str:
        """Run a block of commands; returns what they printed."""
        lines = commands.replace("env/bin/", f"{Path(sys.executable).parent}/").replace(
            PORT, self.port
        )
        address = f"export TIDEWORK_REDIS_URL=redis://127.0.0.1:{self.port}/0"
        done = subprocess.run(
            ["bash", "-euc", f"{address}\n{lines}"],
            cwd=self.folder,
            env={k: v for k, v in os.environ.items() if not k.startswith("TIDEWORK_")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def dev(self) -> Iterator[DevProcess]:
        """The `tidework dev` of the page, as the first terminal."""
        dev = DevProcess(self.folder, "shop.yaml", "--redis-port", self.port)
        try:
            dev.wait_for("started")
            yield dev
        finally:
            dev.end()


def test_getting_started(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    install, task, queue, start, enqueue, program, fail, replay, schedule, cron = blocks_of(
        "docs/getting-started.md"
    )
    assert "pip install" in install.text
    assert start.text == f"env/bin/tidework dev shop.yaml --redis-port {PORT}\n"
    reader.save(task)
    reader.save(queue)

    with reader.dev() as dev:
        assert "first" in reader.run(enqueue.text)
        assert "{'sent': 'bob@example.org', 'subject': 'Hi'}" in reader.run(program.text)
        get = "env/bin/tidework job get first --queue emails"
        dev.wait_until(lambda: "ada@example.org" in reader.run(get))
        assert "succeeded" in reader.run(get)

        reader.run(fail.text)
        dead = "env/bin/tidework dead list --queue emails"
        dev.wait_until(lambda: "'nowhere' is not a valid address" in reader.run(dead))
        shaky = "env/bin/tidework job get shaky --queue emails"
        dev.wait_until(lambda: "succeeded" in reader.run(shaky))
        assert "1 replayed" in reader.run(replay.text.splitlines()[0])
        assert "succeeded" in reader.run(replay.text.splitlines()[1])

        reader.save(schedule)
        dev.wait_until(lambda: "greeting" in reader.run("env/bin/tidework cron list"))
        printed = reader.run(cron.text)
        assert "08:00" in printed
        assert "greeting" in printed


def test_first_steps(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    found = blocks_of("README.md")
    files = [block for block in found if block.file is not None]
    assert [block.file for block in files] == ["shop.py", "shop.yaml"]
    for block in files:
        reader.save(block)
    (start,) = [block for block in found if "tidework dev" in block.text and block.kind == "sh"]
    after = found[found.index(start) + 1]

    with reader.dev():
        printed = reader.run(after.text)

    assert "{'sent': 'bob@example.org'}" in printed
    assert "succeeded" in printed
