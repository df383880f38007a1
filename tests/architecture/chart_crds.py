"""The chart's copies of the CRDs equal crds/: `python -m tests.architecture.chart_crds [--write]`.

A copy is the file's text with the annotation that makes Helm keep it, behind `crds.install`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.architecture.source import ROOT, Finding

SOURCES = "crds"
COPIES = "charts/tidework/templates/crds"
MEND = "Run `python -m tests.architecture.chart_crds --write`."
METADATA = "\nmetadata:\n"
KEEP = """\
  annotations:
    # deleting the CRDs would delete every TaskQueue and CronTask of the cluster
    helm.sh/resource-policy: keep
"""
TEMPLATE = """\
{{{{- /* Written by `python -m tests.architecture.chart_crds --write` from {source}. */}}}}
{{{{- if .Values.crds.install }}}}
{text}{{{{- end }}}}
"""


def check(root: Path) -> list[Finding]:
    """Copies that are missing, differ, or have no original."""
    wanted = templates(root)
    found = {path.name: path.read_text("utf-8") for path in (root / COPIES).glob("*.yaml")}
    return [
        Finding(f"{COPIES}/{name}", 1, f"is not as {SOURCES}/{name} says")
        for name in sorted(wanted.keys() | found.keys())
        if wanted.get(name) != found.get(name)
    ]


def write(root: Path) -> None:
    """Make the copies equal."""
    folder = root / COPIES
    folder.mkdir(parents=True, exist_ok=True)
    wanted = templates(root)
    for path in folder.glob("*.yaml"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, "utf-8")


def templates(root: Path) -> Mapping[str, str]:
    """Name -> text of each template. Raises ValueError for a CRD that can't be copied as it is."""
    originals = sorted((root / SOURCES).glob("*.yaml"))
    return {path.name: template(path.name, path.read_text("utf-8")) for path in originals}


def template(name: str, text: str) -> str:
    """The template of one CRD."""
    source = f"{SOURCES}/{name}"
    if "{{" in text:
        raise ValueError(f"{source}: Helm would take '{{{{' for an expression of its own")
    if text.count(METADATA) != 1 or "annotations:" in text.partition("\nspec:\n")[0]:
        raise ValueError(f"{source}: expected one `metadata:` on a line of its own, not annotated")
    return TEMPLATE.format(source=source, text=text.replace(METADATA, METADATA + KEEP))


def main(arguments: list[str]) -> None:
    """Write, or exit with the findings."""
    if arguments == ["--write"]:
        write(ROOT)
        return
    if arguments:
        sys.exit("usage: python -m tests.architecture.chart_crds [--write]")
    findings = check(ROOT)
    for finding in findings:
        print(finding)
    if findings:
        sys.exit(f"{len(findings)} found. {MEND}")


if __name__ == "__main__":
    main(sys.argv[1:])
