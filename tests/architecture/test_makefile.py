"""The Makefile explains itself, `check` reaches every gate, a missing Python is a clear error."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.planted import make
from tests.architecture.source import ROOT

TARGET = re.compile(r"^([a-z0-9-]+):", re.MULTILINE)


def test_help_lists_every_target() -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text("utf-8")))

    listed = set(re.findall(r"^  make ([a-z0-9-]+) ", make(ROOT, "help").stdout, re.MULTILINE))

    assert targets == listed


@pytest.mark.parametrize(
    "command",
    [
        "lint-imports",
        "tests.architecture.sizes",
        "tests.architecture.words",
        "tests.architecture.prose",
        "ruff format --check",
        "ruff check",
        "mypy",
        "tests/unit tests/contract tests/property tests/architecture",
    ],
)
def test_check_runs_every_gate(command: str) -> None:
    assert command in make(ROOT, "--dry-run", "check").stdout


def test_demo_stays_up_only_when_asked() -> None:
    assert "--keep" in make(ROOT, "--dry-run", "demo", "KEEP=1").stdout
    assert "--keep" not in make(ROOT, "--dry-run", "demo").stdout


def fake_python(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def set_up(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run environment.sh with nothing but `path` and the tools it needs on the PATH."""
    for tool in ("sh", "dirname", "touch"):
        found = shutil.which(tool)
        assert found
        (path / tool).symlink_to(found)
    return subprocess.run(
        [ROOT / "requirements/environment.sh", "all", path / "venv", *arguments],
        env={**os.environ, "PATH": str(path)},
        text=True,
        capture_output=True,
        timeout=30,
        check=False,
    )


def test_no_recent_python_is_a_clear_error(tmp_path: Path) -> None:
    fake_python(tmp_path, "python3", "exit 1")

    ended = set_up(tmp_path)

    assert ended.returncode == 1
    assert ended.stderr.startswith("error: no Python 3.11 or later found on the PATH.")
    assert "make PYTHON=" in ended.stderr


def test_a_python_that_was_named_and_does_not_fit_is_a_clear_error(tmp_path: Path) -> None:
    ended = set_up(tmp_path, "python9.9")

    assert ended.returncode == 1
    assert "PYTHON=python9.9 does not start a Python 3.11 or later" in ended.stderr


def test_a_python_without_venv_is_a_clear_error(tmp_path: Path) -> None:
    fake_python(
        tmp_path,
        "python3.12",
        'case "$2" in *ensurepip*) exit 1 ;; *print*) echo python3.12-venv ;; esac',
    )

    ended = set_up(tmp_path)

    assert ended.returncode == 1
    assert "python3.12 cannot create environments" in ended.stderr
    assert "apt install python3.12-venv" in ended.stderr
