"""The models are fit to become CRDs: documented, in camelCase, with the unit in the name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.documents import crontask, queue
from tidework.manifests import KINDS, CronTask, TaskQueue, parse_document


def properties(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every named field of a JSON schema and of its definitions."""
    for name, found in schema.get("properties", {}).items():
        yield f"{path}.{name}", found
    for name, found in schema.get("$defs", {}).items():
        yield from properties(found, name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_a_description_and_a_camel_case_name(kind: str) -> None:
    found = dict(properties(KINDS[kind].model_json_schema(by_alias=True), kind))

    assert len(found) > 20
    assert [path for path, field in found.items() if not field.get("description")] == []
    names = [path.rpartition(".")[2] for path in found]
    assert [name for name in names if not re.fullmatch(r"[a-z]+([A-Z][A-Za-z]*)?", name)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_bounded_and_every_duration_has_its_unit(kind: str) -> None:
    for path, field in properties(KINDS[kind].model_json_schema(by_alias=True), kind):
        for form in (field, *field.get("anyOf", ())):
            if form.get("type") in ("integer", "number"):
                assert {"minimum", "exclusiveMinimum"} & form.keys(), path
                assert {"maximum", "exclusiveMaximum"} & form.keys(), path
        if re.search(r"timeout|window|period|deadline|grace|idle|lease$", path, re.IGNORECASE):
            assert path.endswith("Seconds"), path


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_fields_are_refused_everywhere_but_in_the_metadata(kind: str) -> None:
    schema = KINDS[kind].model_json_schema(by_alias=True)
    parts = {"": schema} | schema["$defs"]

    is_open = [
        name
        for name, part in parts.items()
        if "properties" in part and part.get("additionalProperties") is not False
    ]
    assert is_open == ["Metadata"]


@pytest.mark.parametrize(
    "document",
    [
        queue(env=[{"name": "A", "value": "1"}], scaling={"targetWaitSeconds": 1.5}),
        crontask(params={"null": None, "deep": [{"x": None}]}, startTime="2030-01-31T06:00:00Z"),
        crontask(schedule="0 6 * * *", timeZone="Europe/Berlin", catchUp="None", dst="Clock"),
    ],
)
def test_what_is_written_out_reads_back_the_same(document: TaskQueue | CronTask) -> None:
    text = document.model_dump_json(by_alias=True)

    assert parse_document(json.loads(text)) == document
