"""ARCHITECTURE.md and the scripts that change state agree, file by file."""

from __future__ import annotations

import re

from tests.architecture.source import ROOT

SCRIPTS = ROOT / "worker/src/tidework/broker/scripts"
NAMED = re.compile(r"[\w-]+\.lua\b")


def named_scripts() -> set[str]:
    return set(NAMED.findall((ROOT / "ARCHITECTURE.md").read_text("utf-8")))


def test_every_script_is_named_in_architecture_md() -> None:
    scripts = {path.name for path in SCRIPTS.glob("*.lua")}

    assert scripts, f"no scripts in {SCRIPTS}: has the folder moved?"
    assert scripts - named_scripts() == set(), "ARCHITECTURE.md's state diagram lacks these"


def test_every_script_named_in_architecture_md_exists() -> None:
    # Shared fragments may lie in folders below.
    files = {path.name for path in SCRIPTS.rglob("*.lua")}

    assert named_scripts() - files == set(), "ARCHITECTURE.md names files that do not exist"
