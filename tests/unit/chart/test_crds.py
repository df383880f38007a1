"""The chart's copies of the CRDs: equal to crds/, kept by Helm, left out on request."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture import chart_crds
from tests.architecture.source import ROOT
from tests.unit.chart.rendering import documents, render

CRD = """\
apiVersion: apiextensions.k8s.io/v1
metadata:
  name: things.tidework.dev
spec:
  group: tidework.dev
"""


def plant(root: Path, text: str = CRD) -> Path:
    path = root / chart_crds.SOURCES / "things.yaml"
    path.parent.mkdir()
    path.write_text(text)
    return path


def test_the_copies_are_current() -> None:
    assert list(map(str, chart_crds.check(ROOT))) == [], chart_crds.MEND


def test_what_was_written_is_current_and_a_change_is_noticed(tmp_path: Path) -> None:
    source = plant(tmp_path)
    assert [found.text for found in chart_crds.check(tmp_path)] == [
        "is not as crds/things.yaml says"
    ]

    chart_crds.write(tmp_path)
    assert chart_crds.check(tmp_path) == []

    source.write_text(CRD.replace("group", "crew"))
    assert len(chart_crds.check(tmp_path)) == 1


def test_a_copy_without_an_original_is_noticed_and_goes(tmp_path: Path) -> None:
    source = plant(tmp_path)
    chart_crds.write(tmp_path)
    source.rename(source.with_name("others.yaml"))

    assert len(chart_crds.check(tmp_path)) == 2
    chart_crds.write(tmp_path)
    assert [path.name for path in (tmp_path / chart_crds.COPIES).iterdir()] == ["others.yaml"]


@pytest.mark.parametrize(
    "text",
    [
        CRD.replace("group: tidework.dev", "group: '{{ x }}'"),
        CRD.replace("spec:", "  annotations: {}\nspec:"),
        CRD.replace("metadata:\n  name", "metadata: {}\nname"),
    ],
    ids=["template", "annotated", "flow"],
)
def test_what_cannot_be_copied_is_refused(tmp_path: Path, text: str) -> None:
    plant(tmp_path, text)

    with pytest.raises(ValueError, match=r"crds/things\.yaml: "):
        chart_crds.check(tmp_path)


def test_helm_renders_them_as_they_are_and_keeps_them() -> None:
    rendered = {
        found["metadata"]["name"]: found for found in render().all("CustomResourceDefinition")
    }
    (originals,) = [[d for path in (ROOT / "crds").glob("*.yaml") for d in documents(path)]]

    assert rendered.keys() == {original["metadata"]["name"] for original in originals}
    for original in originals:
        found = rendered[original["metadata"]["name"]]
        assert found["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
        assert found == original


def test_they_are_left_out_on_request() -> None:
    assert render({"crds": {"install": False}}).all("CustomResourceDefinition") == []
