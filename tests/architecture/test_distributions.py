"""Two distributions, one version, one hashed requirements file; `operator/` is no package."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import ROOT

PROJECTS = {"tidework": "worker", "tidework-operator": "operator"}
REQUIREMENTS = ROOT / "requirements/all.txt"
DIRECT = re.compile(r"^[A-Za-z0-9._-]+")
PINNED = re.compile(r"^([a-z0-9.-]+)==\S+.*\\$", re.MULTILINE)


def read(path: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / path).read_text("utf-8"))


def normalized(requirement: str) -> str:
    """The name in a requirement, as package indexes compare names."""
    found = DIRECT.match(requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def direct_requirements() -> set[str]:
    """What the two distributions, with all extras, and the tools ask for by name."""
    asked = list(read("pyproject.toml")["dependency-groups"]["tools"])
    for folder in PROJECTS.values():
        project = read(f"{folder}/pyproject.toml")["project"]
        asked += project["dependencies"]
        for extra in project.get("optional-dependencies", {}).values():
            asked += extra
    return {normalized(requirement) for requirement in asked} - set(PROJECTS)


def test_both_distributions_and_the_changelog_have_one_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    top = re.search(r"^## \[(\d[^\]]*)\]", changelog, re.MULTILINE)

    assert top, "CHANGELOG.md has no entry of the form `## [1.2.3] - date`"
    for folder in PROJECTS.values():
        assert read(f"{folder}/pyproject.toml")["project"]["version"] == top[1]


@pytest.mark.parametrize("distribution", list(PROJECTS))
def test_what_is_installed_is_this_version(distribution: str) -> None:
    declared = read(f"{PROJECTS[distribution]}/pyproject.toml")["project"]["version"]

    assert version(distribution) == declared, "run `make -B .venv/ready`"


def test_every_direct_requirement_is_pinned_with_hashes() -> None:
    text = REQUIREMENTS.read_text("utf-8")
    pinned = set(PINNED.findall(text))

    missing = direct_requirements() - pinned

    assert missing == set(), "run `make requirements`"
    assert len(pinned) == len(re.findall(r"^\S+==.*\n    --hash=sha256:", text, re.MULTILINE))


def test_the_requirements_file_names_no_index_and_no_place() -> None:
    text = REQUIREMENTS.read_text("utf-8")

    assert re.findall(r"^-\S+|\S+://\S*|@ .*| /\S+", text, re.MULTILINE) == []


@pytest.mark.parametrize("folder", ["operator", "worker"])
def test_the_folders_of_the_distributions_are_no_packages(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists(), "it would shadow the standard library"
    assert not (ROOT / folder / "src/__init__.py").exists()


def test_import_operator_is_the_standard_library_even_from_the_root() -> None:
    # Without -I and with the root first on the path: the worst case, as pytest and mypy run.
    code = "import operator, sys; sys.exit(not hasattr(operator, 'itemgetter'))"

    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=30)


def test_mypy_takes_operator_for_the_standard_library(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import operator\nreveal_type(operator.itemgetter('id'))\n")
    command = [sys.executable, "-m", "mypy", f"--cache-dir={tmp_path / 'cache'}", str(program)]

    checked = subprocess.run(
        command, cwd=ROOT, text=True, capture_output=True, timeout=50, check=False
    )

    assert 'Revealed type is "operator.itemgetter[str]"' in checked.stdout, checked.stdout


@pytest.mark.parametrize("package", ["worker/src/tidework", "operator/src/tidework_operator"])
def test_every_folder_with_modules_is_a_package_that_the_contracts_see(package: str) -> None:
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}

    assert folders
    assert [f for f in sorted(folders) if not (f / "__init__.py").exists()] == []
