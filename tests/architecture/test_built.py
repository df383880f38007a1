"""What is built carries its licence, its README and the project's address: wheel and sdist."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.architecture.test_distributions import PROJECTS, read
from tidework_operator.naming import GROUP_DOMAIN

TEXTS = ("LICENSE", "NOTICE")


@pytest.fixture(scope="module", params=list(PROJECTS))
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and sdist of one distribution, by the hatchling that is installed."""
    target = tmp_path_factory.mktemp("built")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", str(target)],
        cwd=ROOT / PROJECTS[request.param],
        check=True,
        capture_output=True,
        timeout=50,
    )
    return target


def files_of(package: Path) -> dict[str, str]:
    """Text files of the metadata, by their names within it."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            names = [name for name in wheel.namelist() if ".dist-info/" in name]
            return {name.partition(".dist-info/")[2]: wheel.read(name).decode() for name in names}
    found = {}
    with tarfile.open(package) as sdist:
        for member in sdist.getmembers():
            name = member.name.partition("/")[2]
            content = None if "/" in name else sdist.extractfile(member)
            if content is not None:
                found[name] = content.read().decode()
    return found


def metadata_of(files: dict[str, str]) -> Message:
    return Parser().parsestr(files.get("METADATA") or files["PKG-INFO"])


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_the_metadata_name_licence_readme_and_address(built: Path, kind: str) -> None:
    (package,) = built.glob(kind)
    found = metadata_of(files_of(package))
    folder = PROJECTS[found["Name"]]

    assert found["License-Expression"] == "Apache-2.0"
    assert found.get_all("License-File") == list(TEXTS)
    assert found.get_all("Project-URL") == [f"Homepage, https://{GROUP_DOMAIN}"]
    assert found["Description-Content-Type"] == "text/markdown"
    assert found.get_payload() == (ROOT / folder / "README.md").read_text("utf-8")


def test_the_texts_of_the_licence_are_in_wheel_and_sdist(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    in_wheel, in_sdist = files_of(wheel), files_of(sdist)

    for name in TEXTS:
        text = (ROOT / name).read_text("utf-8")
        assert in_wheel[f"licenses/{name}"] == text
        assert in_sdist[name] == text
    assert "README.md" in in_sdist


@pytest.mark.parametrize("folder", list(PROJECTS.values()))
@pytest.mark.parametrize("name", TEXTS)
def test_the_copies_of_the_licence_are_those_of_the_root(folder: str, name: str) -> None:
    own = (ROOT / folder / name).read_bytes()

    assert own == (ROOT / name).read_bytes(), f"copy {name} into {folder}/"


@pytest.mark.parametrize("folder", list(PROJECTS.values()))
def test_the_readme_names_every_extra_and_command(folder: str) -> None:
    project = read(f"{folder}/pyproject.toml")["project"]
    text = (ROOT / folder / "README.md").read_text("utf-8")

    for extra in project.get("optional-dependencies", {}):
        assert f"`{project['name']}[{extra}]`" in text
    for command in project["scripts"]:
        assert f"`{command.replace('kubectl-', 'kubectl ')}" in text


@pytest.mark.parametrize("folder", list(PROJECTS.values()))
def test_an_image_can_be_built_of_what_docker_is_given(folder: str) -> None:
    given = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    project = read(f"{folder}/pyproject.toml")["project"]

    for name in (project["readme"], *project["license-files"], "pyproject.toml", "src"):
        assert f"!{folder}/{name}" in given
