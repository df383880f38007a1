"""Builds the product's images and brings them to the cluster.

A tag names the content (`e2e-` and the start of the image's id), so that a pod that names it runs
exactly this build, and what a node has already is not sent again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.commands import CommandError, say
from tests.e2e.rig.machine import Machine
from tests.e2e.rig.options import RigError

ROOT = Path(__file__).parents[3]
EXAMPLE = "examples/on-kubernetes"
PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy")


@dataclass(frozen=True)
class Images:
    """References that pods of the cluster can name."""

    operator: str
    worker: str
    example: str


def split_reference(reference: str) -> tuple[str, str]:
    """Repository and tag, as the chart's values want them."""
    repository, _, tag = reference.rpartition(":")
    return repository, tag


def build_images(machine: Machine, python: str, root: Path = ROOT) -> Images:
    """Build all three on the image `python`. Raises RigError with the builder's output."""
    # where images can be pulled, the Dockerfile's own default is what has to work
    foundation = python if machine.offline else None
    worker = build_image(machine, root, "worker", target="worker", foundation=foundation)
    operator = build_image(machine, root, "operator", target="operator", foundation=foundation)
    # an example is a worker with an app in it
    example = build_image(machine, root / EXAMPLE, "example", foundation=worker)
    return Images(operator=operator, worker=worker, example=example)


def build_image(
    machine: Machine,
    context: Path,
    name: str,
    *,
    target: str | None = None,
    foundation: str | None = None,
) -> str:
    """Build `tidework/NAME` from the Dockerfile in `context`; returns it with a tag of its content.

    `foundation` is given to the Dockerfile as BASE_IMAGE.
    """
    repository = f"tidework/{name}"
    command = [
        "docker",
        "build",
        "--tag",
        f"{repository}:e2e",
        "--file",
        str(context / "Dockerfile"),
    ]
    if target:
        command += ["--target", target]
    if foundation:
        command += ["--build-arg", f"BASE_IMAGE={foundation}"]
    if machine.offline:
        # packages are reached as the machine reaches them
        command += ["--network", "host"]
    for variable in PROXY_VARIABLES:
        for spelling in (variable, variable.upper()):
            if machine.environment.get(spelling):
                command += ["--build-arg", spelling]
    command.append(str(context))
    try:
        machine.run("env", *_builder(machine), *command, within=900)
    except CommandError as error:
        raise RigError(f"image {repository} could not be built: {error}") from error
    return _tag_by_content(machine, repository)


def _builder(machine: Machine) -> list[str]:
    """BuildKit: clients before 23 have it built in and off, later ones use it where it is there."""
    version = machine.run("docker", "version", "--format", "{{.Client.Version}}")
    return ["DOCKER_BUILDKIT=1"] if int(version.split(".")[0]) < 23 else []


def _tag_by_content(machine: Machine, repository: str) -> str:
    identity = machine.run("docker", "image", "inspect", "--format", "{{.Id}}", f"{repository}:e2e")
    reference = f"{repository}:e2e-{identity.strip().removeprefix('sha256:')[:12]}"
    machine.run("docker", "tag", f"{repository}:e2e", reference)
    tags = machine.run(
        "docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", f"{repository}"
    )
    former = [t for t in tags.split() if t.startswith(f"{repository}:e2e-") and t != reference]
    if former:
        # only the names: what a container still runs stays
        machine.run("docker", "rmi", "--force", *former)
    return reference


def load_images(cluster: Cluster, references: list[str], registry: str | None = None) -> list[str]:
    """Bring images to the cluster's nodes; returns the references that its pods can name.

    To a cluster that is not kind's they go through `registry` (its host and path). Raises RigError.
    """
    machine = cluster.machine
    try:
        if cluster.kind_name:
            machine.run(
                "kind", "load", "docker-image", *references, "--name", cluster.kind_name, within=300
            )
            return references
        if registry is None:
            raise RigError(
                "the cluster of KUBECONFIG is not one of kind's: images reach it through a registry"
                " only. Set E2E_REGISTRY to a host and path that it pulls from and you may send to"
            )
        sent = [f"{registry}/{reference}" for reference in references]
        for reference, remote in zip(references, sent, strict=True):
            machine.run("docker", "tag", reference, remote)
            machine.run("docker", "push", remote, within=600)
    except CommandError as error:
        raise RigError(f"images could not be loaded: {error}") from error
    say(f"sent {len(sent)} images to {registry}")
    return sent
