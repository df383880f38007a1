"""A script of the broker gives no name of its fragments another meaning.

Fragments are composed in front of a script into one text, so that each sees the names of those
before it. A local of the same name hides a function from all that follows: a later edit then calls
a number, or the wrong table, in a branch that few tests reach.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

SCRIPTS = ROOT / "worker/src/tidework/broker/scripts"
COMPOSED_OF = re.compile(r"^-- (?:uses|seldom): *(.*)$", re.MULTILINE)
COMMENT = re.compile(r"--.*")
TOP_FUNCTION = re.compile(r"^local function (\w+)\(", re.MULTILINE)
TOP_LOCAL = re.compile(r"^local (?!function\b)([\w ,]+?) *(?:=|$)", re.MULTILINE)
INNER_FUNCTION = re.compile(r"^[ \t]+local function (\w+)", re.MULTILINE)
INNER_LOCAL = re.compile(r"^[ \t]+.*?\blocal (?!function\b)([\w ,]+?) *(?:=|$)", re.MULTILINE)
LOOP = re.compile(r"\bfor ([\w ,]+?) *(?:=|\bin\b)")
PARAMETERS = re.compile(r"\bfunction *\w* *\(([^)]*)\)")


def names_in(found: str) -> list[str]:
    return re.findall(r"\w+", found)


def top_names(text: str) -> Iterator[str]:
    """What a file gives to those after it."""
    code = COMMENT.sub("", text)
    yield from TOP_FUNCTION.findall(code)
    for found in TOP_LOCAL.findall(code):
        yield from names_in(found)


def inner_names(text: str) -> Iterator[str]:
    """What its functions and loops call their own."""
    code = COMMENT.sub("", text)
    yield from INNER_FUNCTION.findall(code)
    for pattern in (INNER_LOCAL, LOOP, PARAMETERS):
        for found in pattern.findall(code):
            yield from names_in(found)


def shadowed(script: str, fragments: dict[str, str]) -> set[str]:
    """Names of the fragments that the script or one of them uses for something else."""
    given = Counter(name for text in fragments.values() for name in top_names(text))
    twice = {name for name, times in given.items() if times > 1}
    again = set(given) & set(top_names(script))
    inner = {name for text in (script, *fragments.values()) for name in inner_names(text)}
    return twice | again | (set(given) & inner)


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.lua")), ids=lambda path: path.stem)
def test_no_name_of_a_fragment_is_hidden(path: Path) -> None:
    text = path.read_text("utf-8")
    fragments = {
        name: (SCRIPTS / "fragments" / f"{name}.lua").read_text("utf-8")
        for names in COMPOSED_OF.findall(text)
        for name in names.split()
    }

    assert shadowed(text, fragments) == set()


@pytest.mark.parametrize(
    "script",
    [
        "local stored = 1\n",
        "local function other()\n  local stored = 1\nend\n",
        "local function other(stored)\nend\n",
        "for _, stored in ipairs({}) do\nend\n",
        "local function stored()\nend\n",
        "if x then\n  local a, stored = 1, 2\nend\n",
    ],
)
def test_a_hidden_name_is_found(script: str) -> None:
    fragment = "local function stored(key)\n  return key\nend\n"

    assert shadowed(script, {"reads": fragment}) == {"stored"}


def test_what_two_fragments_both_define_is_found() -> None:
    assert shadowed("", {"a": "local x = 1\n", "b": "local x = 2\n"}) == {"x"}
