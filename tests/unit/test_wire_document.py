"""docs/wire-format.md names everything that there is on the wire: whoever adds to it adds there."""

from __future__ import annotations

import dataclasses
import json
import re

from tests.unit.wire_calls import DOCUMENT, FILE, SCRIPTS, reply_rows, script_rows
from tidework.broker.keys import QUEUE_PARTS
from tidework.model.fire import ConcurrencyPolicy, FireAnswer, Verdict
from tidework.model.job import MAX_PARAMS_BYTES, RESERVED_FIELDS, Job, JobState
from tidework.model.outcome import ERROR_TEXT_LIMIT, OutcomeKind
from tidework.model.unique import MAX_KEY_LENGTH, OnConflict, Unique, UniqueUntil

FOLDER = FILE.parent
TEXT = DOCUMENT.read_text("utf-8")
SOURCES = "\n".join(path.read_text("utf-8") for path in SCRIPTS.rglob("*.lua"))


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    _, found, rest = TEXT.partition(f"# {title}\n")
    assert found, f"no heading {title!r}"
    return re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def named_in(title: str) -> set[str]:
    """What stands in code in a section."""
    return set(re.findall(r"`([^`\n]+)`", section(title)))


def rows(title: str) -> list[list[str]]:
    """The cells of the section's table; a bar within one is written with a backslash."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def first_column(title: str) -> set[str]:
    return {name for row in rows(title) for name in re.findall(r"`([^`]+)`", row[0])}


def test_the_table_of_scripts() -> None:
    assert rows("Keys and arguments") == script_rows(), (
        "python -m tests.unit.wire_calls --write renews it"
    )


def test_the_table_of_replies() -> None:
    assert rows("Parts of replies") == reply_rows(), (
        "python -m tests.unit.wire_calls --write renews it"
    )


def test_every_script_and_its_reply() -> None:
    told = re.findall(r"^- \*\*`(\w+)`\*\*", section("What they do and return"), re.MULTILINE)

    assert sorted(told) == sorted(path.stem for path in SCRIPTS.glob("*.lua"))


def test_every_part_of_a_key() -> None:
    assert first_column("Keys") == set(QUEUE_PARTS)


def test_every_field_of_an_envelope() -> None:
    fields = set(Job._fields) - {"extra", "delay"}

    assert first_column("Envelope") == fields | {"v", "unions", *RESERVED_FIELDS}
    assert str(MAX_PARAMS_BYTES) in section("Envelope")
    assert first_column("Unique keys") == {field.name for field in dataclasses.fields(Unique)}
    assert named_in("Unique keys") >= {*UniqueUntil, *OnConflict}
    assert f"1 to {MAX_KEY_LENGTH} printable" in section("Names")


def test_every_field_of_a_record() -> None:
    (case, *_) = json.loads((FOLDER / "records.json").read_text("utf-8"))["records"]

    assert [row[0].strip("`") for row in rows("Records")] == list(case["fields"])
    # As record.lua has them, in the order in which it packs them.
    packed = re.search(r"struct\.pack\(LAYOUT, (.*?)\)\)", SOURCES, re.DOTALL)
    assert packed
    assert re.findall(r"r\.(\w+)", packed[1]) == list(case["fields"])
    layout = re.search(r"LAYOUT = '(.*)'", SOURCES)
    assert layout
    assert layout[1] in named_in("Records")


def test_every_counter() -> None:
    counted = set(re.findall(r"count\('(\w+)'", SOURCES)) | {"succeeded", "dead", "cancelled"}

    assert named_in("Counters") == counted


def test_every_field_of_a_hash() -> None:
    named = named_in("Keys")
    cron = re.search(r"FIELDS = \{(.*)\}", SOURCES)
    verdicts = re.search(r"VERDICTS = \{(.*)\}", SOURCES)
    assert cron
    assert verdicts
    for fields in (cron[1], verdicts[1]):
        assert named >= set(re.findall(r"'(\w+)'", fields))
    assert named >= {f"last_{kind}" for kind in re.findall(r"is_late\('(\w+)'", SOURCES)}
    for key in ("meta", "guard"):
        for call in re.findall(rf"K\.{key}, ([^)\n]*)\)", SOURCES):
            assert named >= set(re.findall(r"'(\w+)'", call)), call


def test_every_word_of_an_answer() -> None:
    told = named_in("What they do and return") | named_in("A worker")

    assert told >= {state.value for state in JobState}
    assert told >= {kind.value for kind in OutcomeKind}
    assert told >= {found.value for kind in (Verdict, FireAnswer) for found in kind}
    assert told >= {policy.value for policy in ConcurrencyPolicy}
    answers = set(re.findall(r"return '(\w+)'", SOURCES)) - {"cancelled"}
    answers |= set(re.findall(r"answers\[#answers \+ 1\] = '(\w+)'", SOURCES))
    assert told >= answers
    assert str(ERROR_TEXT_LIMIT) in section("Errors")


def test_every_file_of_vectors() -> None:
    linked = set(re.findall(r"\(wire-format/(\w+\.json)\)", section("Test vectors")))

    assert linked == {path.name for path in FOLDER.iterdir()}


def test_links_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in headings}
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        else:
            assert (FOLDER.parent / target.partition("#")[0]).exists(), target
