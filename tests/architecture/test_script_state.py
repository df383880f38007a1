"""What a fragment of the scripts knows is its own: nothing else assigns to it.

All of a script is one text, so a variable of a fragment can be written from anywhere behind it.
Then nobody can say by reading the fragment what it holds. So others call a function of it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.architecture.test_shadowing import COMMENT, TOP_FUNCTION, top_names

SCRIPTS = ROOT / "worker/src/tidework/broker/scripts"
FRAGMENTS = {path.stem: path.read_text("utf-8") for path in (SCRIPTS / "fragments").glob("*.lua")}
ASSIGNED = re.compile(
    r"(?:^|\b(?:then|else|do) )[ \t]*(?!local\b)([\w.]+(?: *, *[\w.]+)*) *=(?!=)", re.MULTILINE
)
FORWARD = {("writes", "flush")}
"""reads.lua calls it where something is gathered: an empty function until writes.lua is there."""


def variables_of(text: str) -> set[str]:
    return set(top_names(text)) - set(TOP_FUNCTION.findall(text))


def assigned_in(text: str) -> set[str]:
    code = COMMENT.sub("", text)
    return {name for found in ASSIGNED.findall(code) for name in re.findall(r"[\w.]+", found)}


def written_from_outside(name: str, text: str) -> set[str]:
    """Variables of fragments that a script, or another fragment, assigns to."""
    others = {
        each for other, found in FRAGMENTS.items() if other != name for each in variables_of(found)
    }
    own = set(top_names(text))
    return {each for each in assigned_in(text) & others - own if (name, each) not in FORWARD}


@pytest.mark.parametrize("path", sorted(SCRIPTS.rglob("*.lua")), ids=lambda path: path.stem)
def test_no_variable_of_a_fragment_is_written_from_outside(path: Path) -> None:
    name = path.stem if path.parent.name == "fragments" else f"{path.stem}.lua"

    assert written_from_outside(name, path.read_text("utf-8")) == set()


@pytest.mark.parametrize(
    "text",
    [
        "ready_left = nil\n",
        "  ready_left, other = 1, 2\n",
        "  other, ready_left = 1, 2\n",
        "if x then ready_left = n / 2 end -- at least\n",
    ],
)
def test_a_write_from_outside_is_found(text: str) -> None:
    assert written_from_outside("enqueue.lua", text) == {"ready_left"}


@pytest.mark.parametrize(
    "text",
    [
        "local ready_left = 1\n",
        "if ready_left == 1 then\n",
        "-- ready_left = 1\n",
        "r.paused = 1\n",
    ],
)
def test_nothing_else_is_taken_for_one(text: str) -> None:
    assert written_from_outside("enqueue.lua", text) == set()
