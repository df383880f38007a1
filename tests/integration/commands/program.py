"""Runs commands as a slot's child does, in a process of its own: `program.py SCRIPT`.

SCRIPT is Python with ``run(argv, ...)`` at hand; what it puts into ``found`` is printed as JSON.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

from tidework.model.command import Command
from tidework.worker import process
from tidework.worker.child.command_run import run_command


def run(*argv: str, document: bytes = b"{}\n", **options: Any) -> tuple[int, str, str]:
    """Exit code, last line of stdout, trace."""
    end = run_command(Command(argv, **options), os.environ, document)
    return end.code, (end.last_line or b"").decode(), end.trace


def peak_kib() -> int:
    """The most memory that this process had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def belongings() -> dict[str, int]:
    """What a command may not leave to us."""
    return {
        "files": len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - the listing has one itself
        "threads": threading.active_count(),
        "children": len(process.own_children()),
    }


def main() -> None:
    os.setsid()
    process.die_with_parent(os.getppid())
    process.become_subreaper()
    logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s")
    found: dict[str, Any] = {}
    exec(sys.argv[1], {**globals(), "found": found})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
