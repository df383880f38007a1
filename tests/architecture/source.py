"""What the checks of this folder have in common: which files they read, and how they report.

A check is a function `root -> findings` and a program: `python -m tests.architecture.NAME [ROOT]`
prints the findings as FILE:LINE: TEXT and exits 1 if there are any.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# `crds`, `charts` and `docs` hold documents, not programs.
# Files that are broken on purpose: the example buries them.
LEFT_OUT = ("__pycache__", "broken")
FOLDERS = ("worker", "operator", "tests", "examples", "benchmarks")


class Finding(NamedTuple):
    """One offence. `path` is relative to the root, `line` counts from 1."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class Source(NamedTuple):
    """One file: its path relative to the root, and its text."""

    path: str
    text: str


def sources(root: Path, *suffixes: str) -> Iterator[Source]:
    """Every file below FOLDERS with one of the suffixes, in a stable order."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in suffixes or set(LEFT_OUT) & set(path.parts):
                continue
            if path.is_file():
                yield Source(path.relative_to(root).as_posix(), path.read_text("utf-8"))


def run(check: Callable[[Path], list[Finding]], hint: str) -> None:
    """The program around a check: exits 1 with the findings and the hint, or 0 in silence."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    findings = check(root)
    for finding in findings:
        print(finding)
    if findings:
        sys.exit(f"{len(findings)} found. {hint}")
