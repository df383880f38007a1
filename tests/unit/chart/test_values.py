"""values.yaml and values.schema.json say the same, and what neither knows is refused."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.architecture.source import ROOT
from tests.unit.chart.rendering import CHART, RefusedError, render

TYPES = {
    bool: "boolean",
    int: "integer",
    str: "string",
    list: "array",
    dict: "object",
}

Schema = dict[str, Any]


def read_schema() -> Schema:
    found: Schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    return found


def followed(part: Schema, root: Schema) -> Schema:
    """The part itself, or what it refers to."""
    name = part.get("$ref", "").removeprefix("#/definitions/")
    found: Schema = root["definitions"][name] if name else part
    return found


def differences(value: Any, part: Schema, root: Schema, place: str) -> list[str]:
    """Where a default and its schema disagree: in names, in types, in what is allowed."""
    part = followed(part, root)
    found = []
    if "type" in part and part["type"] != TYPES[type(value)]:
        found.append(f"{place}: {value!r} is no {part['type']}")
    if "enum" in part and value not in part["enum"]:
        found.append(f"{place}: {value!r} is none of {part['enum']}")
    if isinstance(value, str) and not re.search(part.get("pattern", ""), value):
        found.append(f"{place}: {value!r} does not match {part['pattern']}")
    if not isinstance(value, dict):
        return found
    properties = part.get("properties", {})
    others = part.get("additionalProperties", True)
    if properties:
        names = value.keys() ^ (properties.keys() - {"global"})
        found += [f"{place}.{name}: only in one of the two" for name in sorted(names)]
    for name, inner in value.items():
        schema = properties.get(name, others if isinstance(others, dict) else {})
        found += differences(inner, schema, root, f"{place}.{name}")
    return found


def closed(part: Schema, place: str) -> list[str]:
    """Objects of named fields that let other names pass."""
    found = []
    if "properties" in part and part.get("additionalProperties") is not False:
        found.append(place)
    for name, inner in part.items():
        if isinstance(inner, dict):
            found += closed(inner, f"{place}/{name}")
    return found


def test_every_default_has_its_place_in_the_schema_and_the_other_way_round() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))

    assert differences(values, read_schema(), read_schema(), "values") == []


def test_the_comparison_sees_what_differs() -> None:
    values = {"replicas": "2", "replica": 2, "log": {"level": "loud"}}
    schema = read_schema()

    found = differences(values, schema, schema, "values")

    assert "values.replicas: '2' is no integer" in found
    assert "values.replica: only in one of the two" in found
    assert "values.crds: only in one of the two" in found
    assert any(line.startswith("values.log.level: 'loud' is none of") for line in found)


def test_no_object_of_the_schema_lets_a_misspelt_name_pass() -> None:
    assert closed(read_schema(), "") == []


def test_the_chart_has_the_version_of_the_product() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "operator/pyproject.toml").read_text("utf-8"))["project"]
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    changelog = re.search(r"^## \[(\d[^\]]*)\]", text, re.MULTILINE)

    assert changelog
    assert chart["version"] == chart["appVersion"] == project["version"] == changelog[1]


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"replica": 3}, "replica"),
        ({"replicas": 0}, "/replicas"),
        ({"image": {"repository": "tidework/operator:1"}}, "/image/repository"),
        ({"watch": {"namespaces": ["Shop"]}}, "/watch/namespaces/0"),
        ({"watch": {"namespaces": "shop"}}, "/watch/namespaces"),
        ({"connections": {"a.b": {"url": "redis://x"}}}, "'a.b'"),
        ({"connections": {"default": {"url": "http://x"}}}, "/connections/default/url"),
        ({"redis": {"password": "too short"}}, "/redis/password"),
        ({"redis": {"maxmemory": "1Gi"}}, "/redis/maxmemory"),
        ({"log": {"level": "loud"}}, "/log/level"),
        ({"resources": {"limits": {"memory": "512MB"}}}, "/resources/limits/memory"),
        ({"resources": {"requests": {"cpu": -1}}}, "/resources/requests/cpu"),
        ({"redis": {"resources": {"limits": {"memory": "1 Gi"}}}}, "/redis/resources/limits"),
        ({"redis": {"storage": {"size": "8K"}}}, "/redis/storage/size"),
        ({"tolerations": [{"key": 1}]}, "/tolerations/0/key"),
        ({"redis": {"tolerations": [{"tolerationSeconds": "30"}]}}, "/redis/tolerations/0"),
    ],
)
def test_helm_refuses_what_does_not_fit_and_says_where(values: dict[str, Any], place: str) -> None:
    with pytest.raises(RefusedError) as refused:
        render(values)

    assert place in str(refused.value)


def test_quantities_of_every_form_are_taken() -> None:
    quantities = {"cpu": 2, "memory": "1.5Gi", "ephemeral-storage": "1e9", "hugepages-2Mi": "4Mi"}
    fractions = {"cpu": 0.5, "memory": "512M"}

    render({"resources": {"limits": quantities, "requests": fractions}})
