"""Plain sentences: turns of phrase and long sentences are found where they stand, code is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture import prose
from tests.architecture.planted import make, make_copy
from tests.architecture.source import ROOT, Source

LONG = "A" + " word" * 45


def found(text: str) -> list[tuple[int, str]]:
    return [(fault.line, fault.text) for fault in prose.faults(Source("docs/page.md", text))]


def test_every_page_is_plain() -> None:
    assert prose.check(ROOT) == []


def test_the_pages_are_found() -> None:
    pages = {page.path for page in prose.pages(ROOT)}

    assert {"README.md", "docs/tasks.md", "examples/exec-tasks/README.md"} <= pages


@pytest.mark.parametrize(
    ("text", "line", "turn"),
    [
        ("It is no address.", 1, "'is no address'"),
        ("One.\n\nTwo, and these\nare no addresses.", 4, "'are no addresses'"),
        ("- a\n- Whoever comes waits.", 2, "'Whoever'"),
        ("| a | b |\n| --- | --- |\n| c | begun anew |", 3, "'anew'"),
        ("## The user is told", 1, "'is told'"),
        ("```sh\ncode\n```\nThis is\ntold.", 4, "'is told'"),
    ],
)
def test_a_turn_of_phrase_is_found_in_its_line(text: str, line: int, turn: str) -> None:
    ((at, says),) = found(text)

    assert (at, says.partition(":")[0]) == (line, turn)


@pytest.mark.parametrize(
    "text",
    [
        "There is no worker yet.",
        "It is no longer there, and it is no more than a word.",
        "Say `is no address` to whom `whoever` means.",
        "```text\nwhoever is told\n```",
        "Renewed.",
    ],
)
def test_what_reads_well_is_left_alone(text: str) -> None:
    assert found(text) == []


def test_a_long_sentence_is_found_and_none_in_code_or_a_table() -> None:
    ((line, says),) = found(f"Short.\n\nShort too. {LONG}.\n")

    assert line == 3
    assert says.startswith("a sentence of 46 words")
    for text in (f"`{LONG}`", f"```\n{LONG}\n```", f"| {LONG} |", f"{LONG[:100]}.\nA {LONG[:100]}"):
        assert found(text) == []


def test_words_with_a_reason_may_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(prose.EXCEPTIONS, ("docs/page.md", "no peer"), "said so by RFC 1")

    assert found("It is no\npeer.\n\nIt is no address.") == [
        (4, '\'is no address\': say "is not a ..." or "has no ..."')
    ]
    assert all(reason for reason in prose.EXCEPTIONS.values())


def test_make_words_names_the_page(tmp_path: Path) -> None:
    root = make_copy(tmp_path)
    (root / "docs").mkdir()
    (root / "docs/planted.md").write_text("Whoever reads it\n")

    gate = make(root, "words")

    assert gate.returncode != 0
    assert "docs/planted.md:1: 'Whoever': say who it is" in gate.stdout
