"""The API as a user meets it: what is taken and refused, explained, and shown in columns."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.e2e.rig.commands import CommandError
from tests.e2e.rig.images import ROOT
from tests.e2e.support.documents import cron_task, task_queue
from tests.e2e.support.installation import Installation

pytestmark = pytest.mark.expected_seconds(45)

DATA = ROOT / "tests/data/crd"
ACCEPTED = sorted((DATA / "accepted").glob("*.yaml"))
REFUSED = sorted(DATA.glob("refused*/*.yaml"))
DRY_RUN = ("apply", "--dry-run=server", "--filename", "-")


def test_there_are_documents_of_both_kinds() -> None:
    assert len(ACCEPTED) >= 4
    assert len(REFUSED) >= 30


def test_documents_that_are_accepted(installation: Installation, namespace: str) -> None:
    for path in ACCEPTED:
        said = installation.cluster.kubectl(
            *DRY_RUN, "--namespace", namespace, input=path.read_text("utf-8")
        )

        assert "created (server dry run)" in said, path.name


def test_documents_that_are_refused_say_what_is_wrong_and_where(
    installation: Installation, namespace: str
) -> None:
    faults = []
    for path in REFUSED:
        text = path.read_text("utf-8")
        field, because = (line.partition(": ")[2] for line in text.splitlines()[:2])
        try:
            installation.cluster.kubectl(*DRY_RUN, "--namespace", namespace, input=text)
        except CommandError as error:
            if field not in error.said or because not in error.said:
                faults.append(f"{path.name}: refused, but not for {field}: {because}\n{error.said}")
        else:
            faults.append(f"{path.name}: accepted")

    assert faults == []


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("taskqueue", ["A queue of jobs and the workers that serve it", "<Object> -required-"]),
        ("taskqueue.spec.app", ["<string>", "module, or module:attribute"]),
        ("taskqueue.spec.scaling.idleSeconds", ["<integer>", "replicas go to zero after so many"]),
        ("taskqueue.spec.template.spec.nodeSelector", ["Labels that a node has to have"]),
        ("taskqueue.status.why", ["Why there are so many replicas"]),
        (
            "crontask.spec.concurrencyPolicy",
            ["ENUM: Allow Forbid Replace", "an earlier run has not"],
        ),
        ("ct.spec.every", ["An interval in whole seconds such as 90s"]),
        ("tq.spec.maxReplicas", ["Default: 5."]),
        ("tq.spec.scaling.behavior.scaleDown.policies", ['Default: [{"type": "Percent"']),
        ("tq.spec.slots", ["Jobs that one replica runs at the same time"]),
    ],
)
def test_fields_are_explained(installation: Installation, field: str, words: list[str]) -> None:
    explained = " ".join(installation.cluster.kubectl("explain", field).split())

    for each in words:
        assert each in explained


def test_columns_say_what_a_person_wants_to_know(
    installation: Installation, namespace: str
) -> None:
    cluster = installation.cluster
    documents = [
        # nothing runs: there is no job
        task_queue("columns", "columns:1"),
        cron_task("columns", "columns", "echo", schedule="0 6 * * *", suspend=True),
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    cluster.kubectl("create", "--namespace", namespace, "--filename", "-", input=text)

    def columns(kind: str) -> list[str]:
        table = cluster.kubectl("get", kind, "--output", "wide", "--namespace", namespace)
        head, *rows = table.splitlines()
        assert [row.split()[0] for row in rows] == ["columns"]
        # two blanks or more lie between columns, one within a name
        return [name.strip() for name in head.split("  ") if name.strip()]

    assert columns("tq") == [
        *("NAME", "READY", "REASON", "WORKERS"),
        *("JOBS WAITING", "JOBS RUNNING", "JOBS LATER", "DEAD LETTERS", "OLDEST(S)"),
        *("PODS", "WHY", "AGE"),
    ]
    assert columns("ct") == [
        *("NAME", "READY", "SCHEDULE", "ZONE", "SUSPENDED", "LAST", "NEXT", "ACTIVE"),
        *("LAST RESULT", "REASON", "AGE"),
    ]
    both = cluster.kubectl("get", "tidework", "--output", "name", "--namespace", namespace)
    assert set(both.split()) == {
        "taskqueue.tidework.dev/columns",
        "crontask.tidework.dev/columns",
    }


def test_what_is_installed_are_the_checked_in_definitions(installation: Installation) -> None:
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        wanted = yaml.safe_load(path.read_text("utf-8"))
        found = installation.cluster.kubectl_json("get", "crd", wanted["metadata"]["name"])
        (version,) = found["spec"]["versions"]

        assert version["schema"] == wanted["spec"]["versions"][0]["schema"]
        conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
        # a schema that is not structural, or names that somebody else has, would show here
        assert conditions["Established"] == conditions["NamesAccepted"] == "True"
        assert "NonStructuralSchema" not in conditions
