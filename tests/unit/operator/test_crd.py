"""The CRDs say what the models say; every rule in them has a document that breaks it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from pydantic import BaseModel, Field

from tidework.cli.lint import lint
from tidework.manifests import CronTask, ManifestErrors, TaskQueue, parse_document
from tidework_operator.crd.__main__ import differences, main, render
from tidework_operator.crd.definitions import CRON_TASK, DEFINITIONS, TASK_QUEUE, Definition
from tidework_operator.crd.schema import Schema, filled_in, structural_schema

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests/data/crd"
ACCEPTED = sorted((DATA / "accepted").glob("*.yaml"))
REFUSED = sorted((DATA / "refused").glob("*.yaml"))
REFUSED_BY_CLUSTERS = sorted((DATA / "refused-by-clusters").glob("*.yaml"))
"""`tidework dev` runs them."""
RULES = "x-kubernetes-validations"


def name_of(path: Path | Definition) -> str:
    return path.stem if isinstance(path, Path) else path.kind.value.kind


def schema_of(definition: Definition) -> Schema:
    (version,) = definition.document()["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema


def parts(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema within a schema, by its path; ``[]`` stands for any entry or key."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, f"{path}.{name}".removeprefix("."))
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from parts(schema[key], f"{path}[]")


def expected(path: Path) -> tuple[str, str]:
    """The field that a refused document is refused for, and what the API server says of it."""
    refused, because = path.read_text().splitlines()[:2]
    return refused.removeprefix("# refused: "), because.removeprefix("# because: ")


def test_the_files_are_as_they_would_be_generated() -> None:
    assert differences(ROOT / "crds") == []


def test_the_check_tells_what_is_missing_stale_or_foreign(tmp_path: Path) -> None:
    run = CliRunner()
    missing = run.invoke(main, ["--check", "--folder", str(tmp_path)])
    assert missing.exit_code == 1
    assert f"{tmp_path}/crontasks.yaml is missing" in missing.stderr

    written = run.invoke(main, ["--folder", str(tmp_path / "new")])
    assert (written.exit_code, written.output) == (0, "")
    assert run.invoke(main, ["--check", "--folder", str(tmp_path / "new")]).exit_code == 0

    (tmp_path / "new/taskqueues.yaml").write_text("old")
    (tmp_path / "new/other.yaml").write_text("foreign")
    stale = run.invoke(main, ["--check", "--folder", str(tmp_path / "new")])
    assert stale.exit_code == 1
    assert "taskqueues.yaml is out of date" in stale.stderr
    assert "other.yaml is none of ours" in stale.stderr
    assert "run `python -m tidework_operator.crd`" in stale.stderr


def test_the_files_are_yaml_of_the_definitions() -> None:
    for definition in DEFINITIONS:
        text = render()[f"{definition.kind.value.plural}.yaml"]
        assert yaml.safe_load(text) == definition.document()


@pytest.mark.parametrize("definition", DEFINITIONS, ids=name_of)
def test_every_field_is_described(definition: Definition) -> None:
    found = dict(parts(schema_of(definition)))

    assert len(found) > 40
    named = {path for path in found if path and not path.endswith("[]") and path != "metadata"}
    assert [path for path in sorted(named) if not found[path].get("description")] == []


@pytest.mark.parametrize("definition", DEFINITIONS, ids=name_of)
def test_every_rule_names_the_remedy_and_has_a_document_that_breaks_it(
    definition: Definition,
) -> None:
    kind = definition.kind.value.kind
    broken = set()
    for path in (*REFUSED, *REFUSED_BY_CLUSTERS):
        if yaml.safe_load(path.read_text())["kind"] == kind:
            field, because = expected(path)
            broken.add((re.sub(r"\[[^]]*\]", "[]", field), because))

    for path_, part in parts(schema_of(definition)):
        for rule in part.get(RULES, ()):
            field = f"{path_}{rule.get('fieldPath', '')}"
            message = rule["message"].removeprefix("metadata.name: ")
            assert (field or "metadata.name", message) in broken
            assert re.search(r"\b(use|write|give|name|keep|remove|move|raise|drop)\b", message)


@pytest.mark.parametrize("path", ACCEPTED, ids=name_of)
def test_accepted_documents_are_served(path: Path) -> None:
    document = yaml.safe_load(path.read_text())

    parsed = parse_document(document)

    assert parsed.metadata.name == path.stem.partition("-")[2]


@pytest.mark.parametrize("path", REFUSED, ids=name_of)
def test_refused_documents_are_refused_without_a_cluster_too(path: Path) -> None:
    field, because = expected(path)

    with pytest.raises(ManifestErrors) as caught:
        parse_document(yaml.safe_load(path.read_text()))

    (error,) = caught.value.errors
    # The API server writes keys of maps in brackets.
    assert error.field == re.sub(r"\[(\D[^]]*)\]", r".\1", field)
    assert because


@pytest.mark.parametrize("path", REFUSED_BY_CLUSTERS, ids=name_of)
def test_what_only_a_cluster_refuses_is_told_by_lint(path: Path) -> None:
    field, because = expected(path)

    found = CliRunner().invoke(lint, [str(path)])

    assert found.exit_code == 0
    assert f"TaskQueue default/emails: a cluster refuses it: {field}: {because}" in found.output


@pytest.mark.parametrize("path", ACCEPTED, ids=name_of)
def test_defaults_are_those_of_the_models(path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    definition = TASK_QUEUE if document["kind"] == "TaskQueue" else CRON_TASK
    schema = schema_of(definition)["properties"]["spec"]

    as_stored = {**document, "spec": filled_in(document["spec"], schema)}

    assert parse_document(as_stored) == parse_document(document)


def test_numbers_have_the_same_defaults_in_full() -> None:
    short = {"app": "shop.tasks"}
    stored = filled_in(short, schema_of(TASK_QUEUE)["properties"]["spec"])

    assert stored["scaling"]["targetBacklogPerSlot"] == 4.0
    assert [policy["value"] for policy in stored["scaling"]["behavior"]["scaleUp"]["policies"]] == [
        4,
        100,
    ]
    assert stored["retention"] == {"succeededSeconds": 3600, "deadSeconds": 604800, "count": 10000}
    # Nothing empty is stored: it would only be noise in every object.
    assert {"template", "resources", "env", "command", "replicas"} & stored.keys() == set()


def test_open_objects_stay_open_and_the_others_closed() -> None:
    is_open = {
        path
        for definition in DEFINITIONS
        for path, part in parts(schema_of(definition))
        if part.get("x-kubernetes-preserve-unknown-fields")
    }

    pod = "spec.template.spec."
    assert is_open == {
        "spec.params",
        "spec.env[].valueFrom",
        pod + "affinity",
        pod + "tolerations[]",
        pod + "topologySpreadConstraints[]",
        pod + "initContainers[]",
        pod + "volumes[]",
        pod + "volumeMounts[]",
        pod + "envFrom[]",
        pod + "securityContext",
        pod + "containerSecurityContext",
    }


def test_taskqueues_can_be_scaled_by_others() -> None:
    (version,) = TASK_QUEUE.document()["spec"]["versions"]
    fields = dict(parts(schema_of(TASK_QUEUE)))

    assert set(version["subresources"]) == {"status", "scale"}
    for path in version["subresources"]["scale"].values():
        assert path.removeprefix(".") in fields
    (other,) = CRON_TASK.document()["spec"]["versions"]
    assert other["subresources"] == {"status": {}}


@pytest.mark.parametrize("definition", DEFINITIONS, ids=name_of)
def test_columns_show_fields_that_there_are(definition: Definition) -> None:
    fields = dict(parts(schema_of(definition)))

    for column in definition.columns:
        path = re.sub(r"\[\?\(@\.type=='\w+'\)\]", "", column.path.replace("[0]", ""))
        if path != column.path and path.startswith(".status.conditions"):
            assert path.replace("conditions", "conditions[]").removeprefix(".") in fields
            continue
        names = re.findall(r"\w+", path)
        if column.path == ".metadata.creationTimestamp":
            continue
        top, *rest = names
        for name in rest:
            assert f"{top}.{name}" in fields


def test_no_two_columns_of_queues_are_of_the_same_thing_and_one_says_of_what() -> None:
    names = [column.name for column in TASK_QUEUE.columns]

    # "Ready" and "Running" alone are said of pods, of jobs, and of the resource itself.
    assert {"Ready", "Workers", "Jobs Waiting", "Jobs Running", "Dead Letters"} <= set(names)
    assert {"Running", "Scheduled", "Dead"} & set(names) == set()
    by_name = {column.name: column.path for column in TASK_QUEUE.columns}
    assert by_name["Ready"] == ".status.conditions[?(@.type=='Ready')].status"
    status = schema_of(TASK_QUEUE)["properties"]["status"]["properties"]
    assert "ready" not in status, "a count of jobs, beside readyReplicas"


@pytest.mark.parametrize("definition", DEFINITIONS, ids=name_of)
def test_descriptions_tell_the_defaults_which_explain_does_not_show(
    definition: Definition,
) -> None:
    found = dict(parts(schema_of(definition)["properties"]["spec"]))
    with_default = {path: part for path, part in found.items() if part.get("default", {}) != {}}

    assert len(with_default) >= 5
    for part in with_default.values():
        default = part["default"]
        words = default if isinstance(default, str) else json.dumps(default)
        assert part["description"].endswith(f" Default: {words}.")


class _Choice(BaseModel):
    field: int | str = Field(description="Two kinds.")


class _Sequence(BaseModel):
    field: tuple[int, str] = Field(description="Its items differ.", default=(1, ""))


class _Open(BaseModel):
    field: dict[str, Any] = Field(description="Open, and nobody said so.")


@pytest.mark.parametrize("model", [_Choice, _Sequence, _Open])
def test_what_has_no_structural_form_is_an_error(model: type[BaseModel]) -> None:
    with pytest.raises(ValueError, match=r"structural form|preserve-unknown"):
        structural_schema(model)


def test_documents_are_what_the_definitions_are_made_for() -> None:
    assert TaskQueue.model_fields["spec"].annotation is TASK_QUEUE.spec
    assert CronTask.model_fields["spec"].annotation is CRON_TASK.spec
