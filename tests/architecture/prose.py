"""Plain sentences in the pages: turns of phrase at which readers stumble, and sentences that are
too long, are reported (the section "Prose" of CONTRIBUTING.md says how to write instead).

Looked at is text: no fenced blocks, and code within a line counts as one word. Cells of tables are
looked at for turns of phrase, not for their length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import Finding, Source, run

PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/*.md",
    "benchmarks/README.md",
    "examples/*/README.md",
    "tests/e2e/README.md",
)
MOST_WORDS = 45
# what readers stumble over -> what to write instead
TURNS = {
    re.compile(r"(?<!there\s)\b(?:is|are)\s+no\s+(?!longer\b|more\b)[a-z]+", re.IGNORECASE): (
        '"is not a ..." or "has no ..."'
    ),
    re.compile(
        r"\bwho(?:so)?ever\b", re.IGNORECASE
    ): "who it is: the user, the program, the worker",
    re.compile(r"\banew\b", re.IGNORECASE): '"again", or what is done: restarted, reloaded',
    re.compile(r"\b(?:is|are)\s+told\b", re.IGNORECASE): (
        "who says it, and where: the log names, the error says"
    ),
}
# (page, words of the line) -> why the line stays as it is
EXCEPTIONS: dict[tuple[str, str], str] = {}

FENCE = re.compile(r"^ *```")
CODE = re.compile(r"(`+)[^`]+?\1")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
GROUP = re.compile(r"\{[^{}]*\}")
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ")
END = re.compile(r"(?<=[.!?:])[)*_\"]*\s+(?=[^a-z])")


def check(root: Path) -> list[Finding]:
    """Every turn of phrase and every sentence that should be plainer."""
    return [finding for source in pages(root) for finding in faults(source)]


def pages(root: Path) -> Iterator[Source]:
    """The pages, in a stable order."""
    for pattern in PAGES:
        for path in sorted(root.glob(pattern)):
            yield Source(path.relative_to(root).as_posix(), path.read_text("utf-8"))


def faults(page: Source) -> Iterator[Finding]:
    """What one page should say more plainly."""
    for number, paragraph in paragraphs(page.text):
        for turn, instead in TURNS.items():
            for found in turn.finditer(paragraph):
                if not excepted(page.path, paragraph):
                    line = number + paragraph.count("\n", 0, found.start())
                    words = " ".join(found[0].split())
                    yield Finding(page.path, line, f"{words!r}: say {instead}")
        if paragraph.lstrip().startswith("|"):
            continue
        for sentence in END.split(paragraph):
            length, begin = len(sentence.split()), " ".join(sentence.split()[:8])
            if length > MOST_WORDS and not excepted(page.path, paragraph):
                line = number + paragraph.count("\n", 0, paragraph.index(sentence))
                text = f"a sentence of {length} words, more than {MOST_WORDS}: {begin} ..."
                yield Finding(page.path, line, text)


def excepted(path: str, paragraph: str) -> bool:
    """Does the paragraph hold words that may stay?"""
    plain = " ".join(paragraph.split())
    return any(page == path and words in plain for page, words in EXCEPTIONS)


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, items, headings and rows of tables, each with its first line."""
    first, lines = 0, list[str]()
    for number, line in enumerate([*plain_text(text).splitlines(), ""], 1):
        begins = line.lstrip().startswith(("|", "#")) or ITEM.match(line) is not None
        if lines and (begins or not line.strip() or lines[0].startswith(("|", "#"))):
            yield first, "\n".join(lines)
            lines = []
        if line.strip():
            first = first if lines else number
            lines.append(line)


def plain_text(text: str) -> str:
    """The text, line by line: fenced blocks blank; code, links and `{groups}` one word each."""

    def one_word(found: re.Match[str]) -> str:
        return "CODE" + "\n" * found[0].count("\n")

    lines, fenced = list[str](), False
    for line in text.splitlines():
        fence = FENCE.match(line) is not None
        lines.append("" if fence or fenced else line)
        fenced ^= fence
    plain = LINK.sub(r"\1", CODE.sub(one_word, "\n".join(lines)))
    while GROUP.search(plain):
        plain = GROUP.sub(one_word, plain)
    return plain


if __name__ == "__main__":
    run(check, "An exception with its reason goes into tests/architecture/prose.py.")
