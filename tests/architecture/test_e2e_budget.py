"""Each end-to-end file says how long it takes, and all of them stay within half an hour."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

BUDGET_SECONDS = 30 * 60
FOLDER = ROOT / "tests/e2e"
FORM = "pytestmark = pytest.mark.expected_seconds(90)"


def expected_seconds(text: str) -> float | None:
    """The number in a module's `pytestmark`, alone or in a list of marks; None without one."""
    for node in ast.parse(text).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                for mark in value.elts if isinstance(value, ast.List) else [value]:
                    match mark:
                        case ast.Call(
                            func=ast.Attribute(attr="expected_seconds"),
                            args=[ast.Constant(value=int() | float() as seconds)],
                        ):
                            return seconds
    return None


def files() -> list[Path]:
    return sorted(FOLDER.rglob("test_*.py"))


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_every_file_says_how_long_it_takes(path: Path) -> None:
    seconds = expected_seconds(path.read_text("utf-8"))

    assert seconds is not None, f"{path.relative_to(ROOT)}: write `{FORM}` with its own seconds"
    assert seconds > 0


def test_all_of_them_stay_within_the_budget() -> None:
    seconds = {path.name: expected_seconds(path.read_text("utf-8")) or 0 for path in files()}

    assert seconds, f"no test file in {FOLDER}"
    assert sum(seconds.values()) <= BUDGET_SECONDS, seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (FORM, 90),
        ("pytestmark = [pytest.mark.timeout(5), pytest.mark.expected_seconds(1.5)]", 1.5),
        ("pytestmark = pytest.mark.timeout(5)", None),
        ("def f():\n    pytestmark = pytest.mark.expected_seconds(1)", None),
        ("", None),
    ],
)
def test_the_mark_is_read(text: str, seconds: float | None) -> None:
    assert expected_seconds(text) == seconds
