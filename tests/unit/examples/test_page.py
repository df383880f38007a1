"""The report: what it says, and that nothing a file is called can break it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

from stdlib_index.chart import bar_chart
from stdlib_index.measuring import Measurement
from stdlib_index.page import render_page, write_page
from stdlib_index.record import Entry, Fault, Findings
from stdlib_index.summary import summarize

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script>&\".py"
VOID = {"meta"}


class Structure(HTMLParser):
    """Checks that tags nest; gathers what a browser would load, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.loaded: list[str | None] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def findings(*missing: str, **more: Entry) -> Findings:
    entries: dict[str, Entry] = {
        "alpha.py": Measurement(10, 20, 3, 40, 40),
        "beta/one.py": Measurement(100, 2, 1, 30, 0),
        "beta/two.py": Measurement(200, 2, 1, 10, 1),
        "small.py": Measurement(5, 1, 0, 2, 2),
        "test/all.py": Measurement(9000, 5, 5, 500, 400),
        "bad.py": Fault("bad.py:3: invalid syntax"),
    }
    return Findings(entries | more, missing)


def structure(found: Findings) -> Structure:
    read = Structure()
    read.feed(render_page("run-1", summarize(found), NOW))
    read.close()
    assert read.open == []
    return read


def test_packages_are_added_up_and_ranked_without_the_tests() -> None:
    found = summarize(findings("late.py"))

    assert (found.total.files, found.total.lines, found.files) == (5, 9315, 7)
    assert [(s.name, s.lines) for s in found.largest] == [
        ("beta", 300),
        ("alpha", 10),
        ("small", 5),
    ]
    assert [(s.name, s.coverage) for s in found.best] == [("alpha", 1.0)]
    assert [(s.name, s.coverage) for s in found.worst] == [("beta", 0.025)]
    assert found.tests.lines == 9000
    assert found.faults == ("bad.py:3: invalid syntax",)


def test_the_page_says_the_numbers_and_loads_nothing() -> None:
    read = structure(findings())
    text = " ".join(" ".join(read.text).split())

    assert "6 files, one job each. Run run-1, written 2026-01-02 03:04:05 UTC." in text
    assert "files measured 5" in text
    assert "bad.py:3: invalid syntax" in text
    assert "beta 2% 1 of 40" in text
    assert "Incomplete" not in text
    assert read.loaded == []
    assert not read.tags & {"script", "link", "img", "iframe"}


def test_the_page_follows_light_and_dark() -> None:
    page = render_page("run-1", summarize(findings()), NOW)

    assert '<meta name="color-scheme" content="light dark">' in page
    assert "@media (prefers-color-scheme: dark)" in page
    assert not re.search(r'(fill|color)="#', page), "colours are the style sheet's"


def test_missing_files_are_named() -> None:
    text = " ".join(" ".join(structure(findings("late.py")).text).split())

    assert "Nothing is known of these files (1)" in text
    assert "late.py" in text


def test_names_and_reasons_are_text_and_never_markup() -> None:
    big = Measurement(10**6, 1, 1, 100, 100)
    hostile: dict[str, Entry] = {HOSTILE: big}
    hostile[f"x/{HOSTILE}"] = Fault(f"x/{HOSTILE}:1: <b>no</b>")
    read = structure(findings(HOSTILE, **hostile))

    assert not read.tags & {"script", "b"}
    assert sum(HOSTILE in text for text in read.text) >= 2, "the dead file and the missing one"


def test_a_run_of_nothing_is_a_page_all_the_same() -> None:
    assert "0 files" in " ".join(structure(Findings({}, ())).text)


def test_bars_are_as_long_as_their_values_and_labels_are_escaped() -> None:
    svg = ET.fromstring(bar_chart("A & B", [("a<b", 200), ("half", 100), ("none", 0)]))
    bars = [float(bar.get("width", "")) for bar in svg.iter("rect")]

    assert bars[0] == 2 * bars[1] > bars[2] == 0
    assert svg.get("aria-label") == "A & B"
    assert [title.text for title in svg.iter("title")] == ["a<b: 200", "half: 100", "none: 0"]


def test_a_long_label_is_shortened_and_kept_in_the_title() -> None:
    svg = ET.fromstring(bar_chart("", [("x" * 100, 1)]))

    assert next(svg.iter("text")).text == "x" * 21 + "…"
    assert next(svg.iter("title")).text == "x" * 100 + ": 1"


def test_the_page_is_written_whole_and_again(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    write_page(folder, "run-1", Findings({}, ()), NOW)
    path = write_page(folder, "run-1", findings(), NOW)

    assert [found.name for found in folder.iterdir()] == ["index.html"]
    assert "6 files" in path.read_text("utf-8")
