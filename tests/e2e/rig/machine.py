"""What this machine runs clusters with: a Docker engine, tools, and the public images.

Where images can be pulled, the tools of the PATH and the public images are used; where not,
offline/ makes all of them. Its scripts do nothing for what they made before.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.e2e.rig.commands import CommandError, run, say
from tests.e2e.rig.options import Options, RigError

OFFLINE = Path(__file__).parents[1] / "offline"
SMALLEST_IMAGE = "hello-world"
# The first build compiles Kubernetes.
BUILD_SECONDS = 3600


@dataclass(frozen=True)
class PublicImages:
    """The official images that pods use, by the names that this machine's clusters know."""

    python: str = "python:3.11-slim-bookworm"
    redis: str = "redis:7.0"


@dataclass(frozen=True)
class Machine:
    """An engine that answers, and an environment that finds docker, kind, kubectl and helm."""

    environment: Mapping[str, str]
    cache: Path
    offline: bool
    """Images can't be pulled here: they are made here."""

    def run(
        self,
        *command: str,
        within: float = 60,
        folder: Path | None = None,
        progress: bool = False,
    ) -> str:
        """Run a program of this environment; see `commands.run`."""
        return run(
            command,
            environment=self.environment,
            within=within,
            folder=folder,
            progress=progress,
        )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One run at a time makes clusters and images; others wait here."""
        with (self.cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def make(self, script: str, *arguments: str) -> str:
        """Run a script of offline/ with its progress shown; returns the name that it printed.

        Raises RigError; the script has said why.
        """
        command = (str(OFFLINE / script), *arguments)
        try:
            return self.run(*command, within=BUILD_SECONDS, progress=True).strip()
        except CommandError as error:
            raise RigError(f"{error}; tests/e2e/README.md says what the rig needs") from error


def unprepared(options: Options) -> Machine:
    """The machine as it is."""
    options.cache.mkdir(parents=True, exist_ok=True)
    # kubectl finds the plugin `tidework` in the folder of this Python
    path = [options.cache / "bin", Path(sys.prefix) / "bin", os.environ["PATH"]]
    return Machine(
        environment={
            **os.environ,
            "E2E_CACHE": str(options.cache),
            "PATH": os.pathsep.join(map(str, path)),
        },
        cache=options.cache,
        offline=options.offline or False,
    )


def prepare_machine(options: Options) -> Machine:
    """Start the engine, find out whether images can be pulled, find or make the tools.

    Raises RigError.
    """
    machine = unprepared(options)
    with machine.alone():
        machine.make("engine", "start")
        if options.offline is None:
            machine = replace(machine, offline=not can_pull(machine))
        return with_tools(machine)


def public_images(machine: Machine) -> PublicImages:
    """The official images, or their stand-ins made here. Raises RigError."""
    if not machine.offline:
        return PublicImages()
    with machine.alone():
        return PublicImages(machine.make("python-image"), machine.make("redis-image"))


def can_pull(machine: Machine) -> bool:
    """Whether an image registry answers."""
    try:
        machine.run("docker", "pull", "--quiet", SMALLEST_IMAGE, within=20)
    except CommandError as error:
        why = (error.said.splitlines() or ["no answer"])[-1]
        say(f"images can't be pulled here, so they are made here ({why})")
        return False
    return True


def with_tools(machine: Machine) -> Machine:
    """The machine with kind, kubectl and helm on its PATH, built from Go modules if need be."""
    tools = ["kind", "kubectl", "helm"]
    path = machine.environment["PATH"]
    if not machine.offline:
        # whoever can pull images may have his own versions
        tools = [tool for tool in tools if shutil.which(tool, path=path) is None]
    if not tools:
        return machine
    folder = machine.make("node/programs", *tools)
    return replace(
        machine, environment={**machine.environment, "PATH": f"{folder}{os.pathsep}{path}"}
    )
