"""The example is a program beside the package: its folder is put where Python looks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.fixtures import redis_url, valkey

__all__ = ["redis_url", "valkey"]

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "stdlib-index"
sys.path.insert(0, str(EXAMPLE))


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A small library: two good files, one that does not parse, one that somebody installed."""
    for name, text in {
        "alpha.py": '"""Alpha."""\n',
        "beta/__init__.py": "def twice(x):\n    return 2 * x\n",
        "beta/bad.py": "def (\n",
        "site-packages/gamma.py": "",
        "beta/notes.txt": "",
    }.items():
        path = tmp_path / "library" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "library"
