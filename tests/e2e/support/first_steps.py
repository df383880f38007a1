"""First steps of docs/kubernetes.md as commands, and an environment to run them as they stand.

Words of a user who has a fresh machine meet a cluster that is there already, images that may not
be pulled, and a Docker that may need the host's network: programs in front of the PATH make up for
that, and for nothing else.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.images import PROXY_VARIABLES, ROOT, load_images
from tests.e2e.rig.machine import PublicImages

HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
COMMANDS = re.compile(r"^```(?:sh|bash|shell)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_of(section: str, text: str) -> list[str]:
    """The fenced blocks of shell commands below a heading of the second level.

    Raises AssertionError if there is no such heading, or nothing to run below it.
    """
    headings = {found[1].strip(): found for found in HEADING.finditer(text)}
    assert section in headings, f"the page has no section {section!r}; it has {sorted(headings)}"
    begin = headings[section].end()
    following = HEADING.search(text, begin)
    blocks = COMMANDS.findall(text, begin, following.start() if following else len(text))
    assert blocks, f"section {section!r} has no fenced block of shell commands"
    return list(blocks)


@contextmanager
def as_on_a_fresh_machine(cluster: Cluster, public: PublicImages, folder: Path) -> Iterator[str]:
    """A PATH with which the commands reach this cluster."""
    programs = folder / "programs"
    programs.mkdir()
    _write_program(programs / "kind", _kind(cluster))
    if cluster.machine.offline:
        _write_program(programs / "docker", _docker(cluster))
        _name_as_published(cluster, public)
    yield f"{programs}:{cluster.environment['PATH']}"


def _kind(cluster: Cluster) -> str:
    """`create cluster` finds the one that is there; `load` goes to it."""
    assert cluster.kind_name is not None
    return f"""\
        export KIND_CLUSTER_NAME={shlex.quote(cluster.kind_name)}
        case "$1 $2" in
            "create cluster") echo "cluster $KIND_CLUSTER_NAME is there" ;;
            *) exec {_program(cluster, "kind")} "$@" ;;
        esac
        """


def _docker(cluster: Cluster) -> str:
    """`build` reaches packages as this machine does."""
    names = [spelling for name in PROXY_VARIABLES for spelling in (name, name.upper())]
    given = [name for name in names if cluster.environment.get(name)]
    options = " ".join(f"--build-arg {name}" for name in given)
    docker = _program(cluster, "docker")
    return f"""\
        export DOCKER_BUILDKIT=1
        if [ "$1" = build ]; then
            shift
            exec {docker} build --network host {options} "$@"
        fi
        exec {docker} "$@"
        """


def _program(cluster: Cluster, name: str) -> str:
    found = shutil.which(name, path=cluster.environment["PATH"])
    assert found is not None, f"{name} is not on the PATH"
    return shlex.quote(found)


def _write_program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\nset -e\n{text}", "utf-8")
    path.chmod(0o755)


def _name_as_published(cluster: Cluster, public: PublicImages) -> None:
    """Official images by their official names, since nothing can be pulled."""
    published = PublicImages()
    pairs = [(public.python, published.python), (public.redis, published.redis)]
    for here, there in pairs:
        cluster.machine.run("docker", "tag", here, there)
    load_images(cluster, [published.redis])


def page() -> str:
    """Its text."""
    return (ROOT / "docs/kubernetes.md").read_text("utf-8")
