"""A docstring says something: none only points elsewhere ("Of Health.", "As `get`.").

Where a method is one that a protocol asks for, the protocol says what it does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, sources

PLACES = ("worker/src/", "operator/src/", "benchmarks/", "examples/")
EMPTY = re.compile(r"(Of|As|As of) (the )?`*[\w.]+`*\.?")
Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def empty_docstrings(root: Path) -> Iterator[str]:
    for source in sources(root, ".py"):
        if not source.path.startswith(PLACES):
            continue
        for node in ast.walk(ast.parse(source.text)):
            if isinstance(node, Documented) and EMPTY.fullmatch(ast.get_docstring(node) or ""):
                yield f"{source.path}:{node.lineno}: {node.name}"


def test_every_docstring_says_something() -> None:
    assert list(empty_docstrings(ROOT)) == []


@pytest.mark.parametrize(
    "text", ["Of Health.", "As ``get``.", "Of asyncio.Protocol.", "Of the job"]
)
def test_one_that_only_points_elsewhere_is_found(tmp_path: Path, text: str) -> None:
    path = tmp_path / "worker/src/tidework/planted.py"
    path.parent.mkdir(parents=True)
    path.write_text(f'def get_sync():\n    """{text}"""\n\n\ndef get():\n    """Of jobs, one."""\n')

    assert list(empty_docstrings(tmp_path)) == ["worker/src/tidework/planted.py:1: get_sync"]
