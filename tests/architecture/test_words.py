"""The word list: wrong names are reported with the right word, and ordinary ones are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture import words
from tests.architecture.planted import make, make_copy
from tests.architecture.source import Source
from tests.architecture.vocabulary import ALLOWED, PHRASES, WORDS

OFFENDER = """\
import click
import json as json_utils

class JobManager:
    def fetch_job(self, maxTries): ...

@click.option("--max-retries", type=int)
def run(max_attempts):
    for lag in ():
        self.job_lock = queue_depth = 1
"""


def test_make_words_names_file_line_and_the_right_word(tmp_path: Path) -> None:
    root = make_copy(tmp_path)
    (root / "worker/src/tidework/model/helpers.py").write_text('"""Planted."""\n')
    script = root / "worker/src/tidework/broker/scripts/planted.lua"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("-- ack\nlocal ok, ack = 1, 2\n")

    gate = make(root, "words")

    assert gate.returncode != 0
    assert "tidework/model/helpers.py:1: name 'helpers': say " in gate.stdout
    assert "scripts/planted.lua:2: name 'ack': say 'settle', not 'ack'" in gate.stdout
    assert "scripts/planted.lua:1:" not in gate.stdout, "comments are not names"


def test_every_kind_of_python_name_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "worker/offender.py"
    path.parent.mkdir()
    path.write_text(OFFENDER)

    found = [(f.line, f.text.partition(":")[0]) for f in words.check(tmp_path)]

    assert sorted(found) == [
        (2, "name 'json_utils'"),
        (4, "name 'JobManager'"),
        (5, "name 'fetch_job'"),
        (5, "name 'maxTries'"),
        (7, "name '--max-retries'"),
        (9, "name 'lag'"),
        (10, "name 'job_lock'"),
        (10, "name 'queue_depth'"),
    ]


def test_every_kind_of_lua_name_is_looked_at() -> None:
    text = "local a, lag = 1\nlocal function push(x, tz)\nfor i, ack in t do\nreturn fetch(y)\n"

    found = list(words.lua_names(Source("x.lua", text)))

    assert found == [("a", 1), ("lag", 1), ("push", 2), ("x", 2), ("tz", 2), ("i", 3), ("ack", 3)]


@pytest.mark.parametrize("name", ["clock", "unlock", "block_for", "entries", "base32", "_lock"])
def test_words_inside_other_words_and_allowed_names_pass(name: str) -> None:
    assert not list(words.offences(name))


def test_the_vocabulary_is_whole() -> None:
    for wrong, right in [*WORDS.items(), *((" ".join(p), right) for p, right in PHRASES.items())]:
        assert right.strip(), f"{wrong} has no right word"
        assert list(words.offences(wrong.replace(" ", "_") + "_x")), f"{wrong} is not found"
    assert all(reason.strip() for reason in ALLOWED.values())
