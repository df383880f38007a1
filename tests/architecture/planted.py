"""A copy of this tree in which a test may plant an offence, and the gates of `make` run on it.

The copy holds the sources and the checks, but no tests: a `make check` that missed the offence
ends at its missing test folders instead of planting again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.architecture.source import ROOT

# What steers a make that runs inside another one.
INHERITED = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "GNUMAKEFLAGS", "VENV", "PYTHON")
IGNORED = shutil.ignore_patterns("__pycache__", "test_*.py", "*.egg-info")


def make_copy(target: Path) -> Path:
    """Copy what the gates read to `target`. Returns it."""
    for folder in ("worker/src", "operator/src", "tests/architecture"):
        shutil.copytree(ROOT / folder, target / folder, ignore=IGNORED)
    for name in ("Makefile", "pyproject.toml", "tests/__init__.py"):
        shutil.copy2(ROOT / name, target / name)
    return target


def make(root: Path, *goals: str) -> subprocess.CompletedProcess[str]:
    """Run `make GOALS` in `root` with the environment of this test run, output in `.stdout`."""
    venv = Path(sys.prefix)
    environment = {k: v for k, v in os.environ.items() if k not in INHERITED}
    # --old-file: the environment belongs to the tree that runs this test; it is not to be renewed.
    command = ["make", f"VENV={venv}", "--old-file", str(venv / "ready"), *goals]
    return subprocess.run(
        command,
        cwd=root,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=50,
        check=False,
    )
