"""Which files the example measures."""

from __future__ import annotations

from pathlib import Path

from stdlib_index.measuring import UnparsableError, measure_source
from stdlib_index.sources import BROKEN, SourceFile, find_sources


def test_installed_packages_and_other_files_are_left_out(library: Path, tmp_path: Path) -> None:
    found = find_sources(library, tmp_path / "nothing")

    assert [source.name for source in found] == ["alpha.py", "beta/__init__.py", "beta/bad.py"]
    assert found[0] == SourceFile("alpha.py", str(library / "alpha.py"))


def test_a_library_that_lies_among_installed_packages_is_read_all_the_same(tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "lib"
    library.mkdir(parents=True)
    (library / "alpha.py").write_text("")

    assert [source.name for source in find_sources(library, tmp_path / "nothing")] == ["alpha.py"]


def test_the_running_library_is_found_with_the_broken_files() -> None:
    names = [source.name for source in find_sources()]

    assert "json/decoder.py" in names
    assert len(names) == len(set(names))
    assert sum(name.startswith("broken/") for name in names) == 3


def test_the_shipped_files_are_broken_in_three_ways() -> None:
    reasons = set()
    for path in sorted(BROKEN.glob("*.py")):
        try:
            measure_source(f"broken/{path.name}", path.read_bytes())
        except UnparsableError as error:
            place, _, reason = str(error).partition(": ")
            assert place == f"broken/{path.name}:3"
            reasons.add(reason)

    assert len(reasons) == 3
