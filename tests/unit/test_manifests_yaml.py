"""YAML is read as Kubernetes reads it, and no text can hang or kill the reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.documents import CRON, QUEUE, faults_in
from tidework.manifests import read_manifests


def params(folder: Path, text: str) -> Any:
    """The params that these lines of YAML give."""
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    (folder / "a.yaml").write_text(f"{QUEUE}---\n{CRON}  params:\n{lines}")
    return read_manifests([folder]).crontasks[0].spec.params


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2030-01-31", "2030-01-31"),
        ("2030-01-31T06:00:00Z", "2030-01-31T06:00:00Z"),
        ("12:30", "12:30"),
        ("1:30:59", "1:30:59"),
        ("=", "="),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("0x1F", 31),
        ("017", 15),
        ("0o17", 15),
        ("0b101", 5),
        ("1_000", 1000),
        ("-7", -7),
        ("18446744073709551615", 18446744073709551615),
        ("yes", True),
        ("Off", False),
        ("None", "None"),
        ("~", None),
        ("", None),
        ("NULL", None),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("1.2.3", "1.2.3"),
        ("0x", "0x"),
    ],
)
def test_plain_text_is_resolved_as_kubernetes_does(tmp_path: Path, text: str, value: Any) -> None:
    found = params(tmp_path, f"it: {text}")["it"]

    assert found == value
    assert type(found) is type(value)


def test_anchors_and_merge_keys_are_served(tmp_path: Path) -> None:
    text = "one: &one {a: 1, b: 2}\ntwo: {<<: *one, b: 3}\nthree: {<<: [{a: 9}, *one]}\nfour: *one"

    assert params(tmp_path, text) == {
        "one": {"a": 1, "b": 2},
        "two": {"a": 1, "b": 3},
        "three": {"a": 9, "b": 2},
        "four": {"a": 1, "b": 2},
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("it: .nan", "spec.params.it: .nan is not a number in JSON"),
        ("it: -.inf", "spec.params.it: -.inf is not a number in JSON"),
        ("it: 1e999", "spec.params.it: 1e999 is not a number in JSON"),
        ("it: 18446744073709551616", "does not fit into 64 bits; put it in quotes"),
        (f"it: {'9' * 5000}", "is not a whole number"),
        ("5: x", "spec.params: key 5 is not text; put it in quotes"),
        ("on: x", "spec.params: key on is not text; put it in quotes"),
        ("? [a]\n: x", "spec.params: key this is not text"),
        (
            "it: !!python/object/apply:os.getcwd []",
            "python/object/apply:os.getcwd is not JSON data",
        ),
        ("it: !!binary aGk=", "spec.params.it: tag tag:yaml.org,2002:binary is not JSON data"),
        ("it: !!set {a}", "spec.params.it: tag tag:yaml.org,2002:set is not JSON data"),
        ("it: !mine x", "spec.params.it: tag !mine is not JSON data"),
        ("it: {<<: 5}", "spec.params.it: << needs a mapping, or a list of mappings"),
        ('it: "\\ud800"', "spec.params.it: holds half of a surrogate pair"),
        ("a: 1\na: 2", "18: spec.params.a: given twice, first in line 17; keep one"),
        ("it: *nowhere", "found undefined alias"),
    ],
)
def test_what_is_no_json_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    found = faults_in(tmp_path, f"{QUEUE}---\n{CRON}  params:\n{lines}")

    assert len(found) == 1
    assert fault in found[0]


def test_a_fault_of_the_yaml_does_not_hide_the_others(tmp_path: Path) -> None:
    text = CRON + "  task: again\n  params: {it: .nan}\n  suspend: maybe\n"

    assert [fault.split(": ")[1] for fault in faults_in(tmp_path, f"{QUEUE}---\n{text}")] == [
        "spec.task",
        "spec.params.it",
        "spec.suspend",
    ]


def test_aliases_that_unfold_without_end_are_refused(tmp_path: Path) -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12)]
    text = "".join(f"    {line}\n" for line in lines)

    found = faults_in(tmp_path, f"{QUEUE}---\n{CRON}  params:\n{text}")

    assert len(found) == 1
    assert "with its aliases this holds more than 200000 values" in found[0]


@pytest.mark.parametrize("text", ["&a [*a, *a]", "&a {b: *a}"])
def test_an_alias_that_holds_itself_is_refused(tmp_path: Path, text: str) -> None:
    found = faults_in(tmp_path, f"{QUEUE}---\n{CRON}  params: {{it: {text}}}\n")

    assert len(found) == 1
    assert "nested too deeply, or an alias that holds itself" in found[0]


def test_text_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    found = faults_in(tmp_path, "[" * 50_000)

    assert found == ["not readable: nested too deeply"]


def test_deep_params_are_read(tmp_path: Path) -> None:
    deep: Any = "end"
    for _ in range(90):
        deep = [deep]

    assert params(tmp_path, f"it: {json.dumps(deep)}") == {"it": deep}


def test_windows_line_ends_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbf" + QUEUE.replace("\n", "\r\n").encode())

    assert read_manifests([tmp_path]).queues[0].spec.app == "shop.tasks"
