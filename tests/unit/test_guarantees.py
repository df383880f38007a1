"""Every promise in docs/guarantees.md names tests, and these exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
PROMISES = [row for row in ROWS if not row.startswith("| promise")]
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def test_every_promise_names_a_test() -> None:
    assert len(PROMISES) > 20
    assert [row for row in PROMISES if not TEST.search(row)] == []


def test_every_test_that_is_named_exists() -> None:
    missing = []
    for path, name in TEST.findall(PAGE):
        file = ROOT / "tests" / path
        text = file.read_text("utf-8") if file.is_file() else ""
        if not re.search(rf"^(async )?def {name}\(", text, re.MULTILINE):
            missing.append(f"{path}::{name}")

    assert missing == []
