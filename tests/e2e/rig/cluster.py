"""A cluster that answers: commands against it and no other, namespaces, ports.

Every program gets the cluster's own KUBECONFIG, whatever the user's shell points at.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.rig.commands import CommandError, run
from tests.e2e.rig.machine import Machine
from tests.e2e.rig.options import RigError
from tests.e2e.rig.waiting import wait_until

FORWARDING = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+) ", re.MULTILINE)
NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: {name}
  labels:
    pod-security.kubernetes.io/enforce: restricted
    dev.tidework/e2e: "true"
"""


class Cluster:
    """`kind_name` is None for a cluster that is not one of kind's."""

    def __init__(self, machine: Machine, kubeconfig: str | None, kind_name: str | None) -> None:
        self.machine = machine
        self.kind_name = kind_name
        self.environment = dict(machine.environment)
        if kubeconfig:
            self.environment["KUBECONFIG"] = kubeconfig
        self.namespaces: list[str] = []
        """Those made by `namespace` and in use: what a failed test's report looks at."""
        self._leaving: list[str] = []

    def run(
        self,
        *command: str,
        input: str | None = None,  # noqa: A002 - the word of subprocess.run
        within: float = 60,
        folder: Path | None = None,
    ) -> str:
        """Run any program against this cluster and return what it printed; see `commands.run`."""
        return run(command, environment=self.environment, within=within, input=input, folder=folder)

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002
        within: float = 60,
    ) -> str:
        """Run kubectl and return what it printed. Raises CommandError with what it complained."""
        return self.run("kubectl", *arguments, input=input, within=within)

    def kubectl_json(self, *arguments: str, within: float = 60) -> Any:
        """`kubectl ... --output json`, parsed."""
        return json.loads(self.kubectl(*arguments, "--output", "json", within=within))

    def helm(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002
        within: float = 300,
    ) -> str:
        """Run helm and return what it printed. Raises CommandError with what it complained."""
        return self.run("helm", *arguments, input=input, within=within)

    def nodes(self) -> list[str]:
        """Names of the nodes; those of a kind cluster are containers of that name."""
        return [item["metadata"]["name"] for item in self.kubectl_json("get", "nodes")["items"]]

    @contextmanager
    def namespace(self, name: str, *, keep: Callable[[], bool] = lambda: False) -> Iterator[str]:
        """A namespace that enforces the restricted profile of Pod Security, deleted afterwards.

        If `keep` then says so it stays. Its deletion takes seconds, so that it is awaited only at
        the end of the run, or before a namespace of the same name is made.
        """
        if name in self._leaving:
            self.wait_until_left([name])
        self._offer_released_volumes()
        self.kubectl("create", "--filename", "-", input=NAMESPACE.format(name=name))
        self.namespaces.append(name)
        try:
            yield name
        finally:
            self.namespaces.remove(name)
            if not keep():
                self.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")
                self._leaving.append(name)

    def wait_until_left(self, names: list[str] | None = None) -> None:
        """Wait until these namespaces, or all that were deleted, are gone.

        Raises RigError with what holds one that is not gone after two minutes.
        """
        for name in names or [*self._leaving]:
            try:
                self.kubectl(
                    "wait", "--for", "delete", f"namespace/{name}", "--timeout", "120s", within=130
                )
            except CommandError as error:
                state = self.kubectl("get", "namespace", name, "--output", "jsonpath={.status}")
                raise RigError(f"namespace {name} is not deleted: {error}\n{state}") from error
            self._leaving.remove(name)

    def _offer_released_volumes(self) -> None:
        """The node image made here has no provisioner but 20 volumes: empty what was let go."""
        if not (self.machine.offline and self.kind_name):
            return
        for volume in self.kubectl_json("get", "persistentvolumes")["items"]:
            path = volume["spec"].get("hostPath", {}).get("path", "")
            if volume["status"]["phase"] != "Released" or not path.startswith("/var/volumes/"):
                continue
            for node in self.nodes():
                self.machine.run("docker", "exec", node, "find", path, "-mindepth", "1", "-delete")
            free = '[{"op": "remove", "path": "/spec/claimRef"}]'
            name = volume["metadata"]["name"]
            self.kubectl("patch", "persistentvolume", name, "--type", "json", "--patch", free)

    @contextmanager
    def port_forward(self, namespace: str, target: str, port: int) -> Iterator[int]:
        """Reach a port of `target` (`service/redis`, `pod/x`) at the returned port of 127.0.0.1.

        It ends with the pod that it was opened to: a test which kills that pod opens another.
        """
        command = ["kubectl", "--namespace", namespace, "port-forward", target, f":{port}"]
        # a file, not a pipe: it writes a line per connection and nobody reads on
        with tempfile.TemporaryDirectory(prefix="tidework-forward-") as folder:
            log = Path(folder) / "log"
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command, env=self.environment, stdout=output, stderr=subprocess.STDOUT
                )

            def opened() -> re.Match[str] | None:
                text = log.read_text("utf-8")
                if process.poll() is not None:
                    raise CommandError(command, f"exited {process.returncode}", text)
                return FORWARDING.search(text)

            try:
                found = wait_until(opened, within=30, describe=f"{target} forwards its port {port}")
                assert found
                yield int(found[1])
            finally:
                process.kill()
                process.wait(timeout=20)
