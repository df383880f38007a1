"""Makes, reuses and deletes the kind cluster; or takes the one that KUBECONFIG points at.

A folder of the cache per cluster keeps its kubeconfig and, if the rig made it, the recipe that it
was made by. The rig deletes no cluster without one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.commands import CommandError, say
from tests.e2e.rig.machine import Machine
from tests.e2e.rig.options import Options, RigError
from tests.e2e.rig.waiting import wait_until

FOLDER = "clusters"
SYSTEM = ("--namespace", "kube-system")


@contextmanager
def open_cluster(machine: Machine, options: Options) -> Iterator[Cluster]:
    """A cluster for a run; one that this run made is deleted afterwards. Raises RigError."""
    if options.existing:
        cluster = existing_cluster(machine)
        yield cluster
        cluster.wait_until_left()
        return
    kind = KindCluster(machine, options)
    with machine.alone():
        made = kind.ensure()
    try:
        yield kind.cluster
        # also before the cluster is deleted: what never leaves is a fault of the product
        kind.cluster.wait_until_left()
    finally:
        if made and not options.keep:
            with machine.alone():
                kind.delete()
        elif made:
            say(
                f"cluster {options.cluster} stays; `python -m tests.e2e.rig up` tells how to use it"
            )


def existing_cluster(machine: Machine) -> Cluster:
    """The cluster of KUBECONFIG (or kubectl's own default)."""
    cluster = Cluster(machine, os.environ.get("KUBECONFIG"), None)
    try:
        nodes = cluster.kubectl_json("get", "nodes")["items"]
    except CommandError as error:
        raise RigError(
            f"E2E_EXISTING=1, but KUBECONFIG's cluster does not answer: {error}"
        ) from error
    # kind://docker/CLUSTER/NODE
    provider, *rest = nodes[0]["spec"].get("providerID", "").partition("://")
    if provider == "kind":
        cluster.kind_name = rest[1].split("/")[1]
    return cluster


class KindCluster:
    """The cluster of a name, there or not yet."""

    def __init__(self, machine: Machine, options: Options) -> None:
        self.name = options.cluster
        self._machine = machine
        self._options = options
        self._home = machine.cache / FOLDER / self.name
        self.kubeconfig = self._home / "kubeconfig"
        self.cluster = Cluster(machine, str(self.kubeconfig), self.name)

    def ensure(self) -> bool:
        """Make it answer. True if it was made now, False if it was there."""
        recipe = self._recipe()
        if self.name in self._kind("get", "clusters").split():
            if self._is_ours() and self._made_by() != recipe:
                say(f"cluster {self.name} was made by another recipe: it is made anew")
            elif self._was_finished() and self._revive():
                return False
            elif self._is_ours():
                say(f"cluster {self.name} does not answer: it is made anew")
            else:
                raise RigError(
                    f"cluster {self.name} does not answer, and it was not made by the tests:"
                    f" delete it (kind delete cluster --name {self.name}) or set E2E_CLUSTER"
                )
            self.delete()
        self._create(recipe)
        return True

    def delete(self) -> None:
        """Delete it, with everything in it."""
        self._kind("delete", "cluster", "--name", self.name, "--kubeconfig", str(self.kubeconfig))
        shutil.rmtree(self._home, ignore_errors=True)
        say(f"deleted cluster {self.name}")

    def _create(self, recipe: dict[str, str | None]) -> None:
        say(f"creating cluster {self.name}")
        self._home.mkdir(parents=True, exist_ok=True)
        (self._home / "recipe").write_text(json.dumps(recipe), "utf-8")
        command = ["create", "cluster", "--name", self.name, "--wait", "3m"]
        command += ["--kubeconfig", str(self.kubeconfig)]
        if recipe["image"]:
            command += ["--image", recipe["image"]]
        if self._options.kind_config:
            command += ["--config", str(self._options.kind_config)]
        try:
            self._kind(*command, within=420)
            self._wait_for_names()
        except BaseException as error:
            if not self._options.keep:
                self.delete()
            if isinstance(error, CommandError):
                raise RigError(f"the cluster could not be made: {error}") from error
            raise

    def _revive(self) -> bool:
        """Start its nodes: they do not come back with the engine. True if it answers."""
        nodes = self._kind("get", "nodes", "--name", self.name).split()
        self._home.mkdir(parents=True, exist_ok=True)
        try:
            states = self._machine.run(
                "docker", "inspect", "--format", "{{.State.Running}}", *nodes
            )
            self._machine.run("docker", "start", *nodes)
            self._kind(
                "export", "kubeconfig", "--name", self.name, "--kubeconfig", str(self.kubeconfig)
            )
            wait_until(
                lambda: self.cluster.kubectl("get", "--raw", "/readyz", within=10),
                within=90,
                describe="the API server answers",
            )
            if "false" in states:
                # its state still says that all is well: what starts anew shows that it is
                self.cluster.kubectl("rollout", "restart", "deployment/coredns", *SYSTEM)
            self._wait_for_names()
        except (CommandError, AssertionError) as error:
            say(str(error))
            return False
        return True

    def _wait_for_names(self) -> None:
        """A node is ready before its pods can look up names."""
        self.cluster.kubectl("rollout", "status", "deployment/coredns", *SYSTEM, within=180)

    def _recipe(self) -> dict[str, str | None]:
        """What the cluster depends on: equal recipes make equal clusters."""
        image = self._options.node_image
        if image is None and self._machine.offline:
            image = self._machine.make("node/image")
        built = image and self._machine.run("docker", "image", "ls", "--quiet", "--no-trunc", image)
        config = self._options.kind_config
        return {
            "image": image,
            "image_id": (built or "").strip(),
            "config": config.read_text("utf-8") if config else None,
        }

    def _is_ours(self) -> bool:
        return (self._home / "recipe").is_file()

    def _was_finished(self) -> bool:
        """False for one of ours whose making was killed: kind writes the kubeconfig last."""
        return self.kubeconfig.is_file() or not self._is_ours()

    def _made_by(self) -> object:
        return json.loads((self._home / "recipe").read_text("utf-8"))

    def _kind(self, *arguments: str, within: float = 120) -> str:
        return self._machine.run("kind", *arguments, within=within)


def our_clusters(cache: Path) -> list[str]:
    """Names of the clusters that the rig made."""
    return sorted(recipe.parent.name for recipe in (cache / FOLDER).glob("*/recipe"))
