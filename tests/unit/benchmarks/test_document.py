"""What a run has found is kept as it goes, and can be printed later."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.document import Document
from benchmarks.run import Result

DESCRIBED = {"versions": {"a": "1.0"}, "delivery": "d", "settings": "s", "jobs": 5}


def document(*results: Result, complete: bool = False) -> Document:
    return Document(
        {"cores": 2},
        {"a": DESCRIBED},
        {"b": "no wheel"},
        {"server": "redis"},
        rounds=2,
        best_pace=10.0,
        complete=complete,
        results=list(results),
    )


def test_what_was_saved_is_read_again_and_prints_the_same(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    made = document(Result("a", 1, {"io.rate": 7.0}, ["cpu: it fell"], "io", 3.5), complete=True)

    made.save(path)

    assert Document.load(path) == made
    assert Document.load(path).text() == made.text()
    assert "| a | 7.0 | - | - | - | - |\n" in made.text()
    assert "- a, round 2: cpu: it fell\n" in made.text()
    assert "| b | not installed | - | no wheel | - |\n" in made.text()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.json"]


def test_a_run_that_was_ended_before_its_time_says_so() -> None:
    assert "before its time" in document().text()
    assert "before its time" not in document(complete=True).text()


def test_a_file_of_before_can_still_be_printed(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    results = [{"system": "a", "round": 2, "figures": {"io.rate": 7.0}, "faults": []}]
    old = {"machine": {}, "best_pace": 0, "plan": {}, "systems": {"a": DESCRIBED}, "missing": {}}
    path.write_text(json.dumps({**old, "results": results}))

    assert "rounds: 3\n" in Document.load(path).text()


def test_a_failure_to_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.json"
    document(Result("a", 0)).save(path)
    before = path.read_bytes()

    def full(self: Path, text: str) -> int:
        with self.open("w") as file:
            file.write(text[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        document(Result("a", 0), Result("a", 1)).save(path)

    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"results": [{"sistem": 1}]}'])
def test_another_file_is_refused_with_the_reason(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)

    with pytest.raises(ValueError, match="was not written by 'python -m benchmarks --json'"):
        Document.load(path)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_line_prints_the_tables_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    made = document(Result("a", 0, {"io.rate": 7.0}))
    made.save(path)

    found = run("--from", str(path))

    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == made.text() + "\n"


def test_the_command_line_names_a_file_that_is_not_there(tmp_path: Path) -> None:
    found = run("--from", str(tmp_path / "none.json"))

    assert found.returncode == 1
    assert "--from: " in found.stderr
    assert "none.json" in found.stderr
    assert "Traceback" not in found.stderr
