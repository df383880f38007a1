"""What the chart makes of values (`helm template`), and what a pod lacks to be restricted."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.source import ROOT
from tests.e2e.rig.options import read_options

CHART = ROOT / "charts/tidework"
RELEASE = "tidework"
NAMESPACE = "system"
PLACES = ("E2E_CACHE", "XDG_CACHE_HOME", "HOME")
ALLOWED_VOLUMES = {"configMap", "secret", "emptyDir", "projected", "persistentVolumeClaim"}

Object = dict[str, Any]


class RefusedError(Exception):
    """Helm's complaint."""


@cache
def find_helm() -> str | None:
    """That of the PATH, else the one that the end-to-end rig has built."""
    folder = read_options({name: os.environ[name] for name in PLACES if name in os.environ}).cache
    built = sorted(str(path) for path in folder.glob("programs-*/helm"))
    return shutil.which("helm") or (built[-1] if built else None)


class Rendering:
    """Objects of one rendering, by kind and name; several of a name differ in their namespace."""

    def __init__(self, text: str) -> None:
        self.objects: list[Object] = [found for found in yaml.safe_load_all(text) if found]

    def all(self, kind: str) -> list[Object]:
        """In the order of rendering."""
        return [found for found in self.objects if found["kind"] == kind]

    def one(self, kind: str, name: str, namespace: str = NAMESPACE) -> Object:
        """The one of this name. Objects without a namespace are in the release's."""
        (found,) = (
            each
            for each in self.all(kind)
            if each["metadata"]["name"] == name
            and each["metadata"].get("namespace", NAMESPACE) == namespace
        )
        return found

    def pods(self) -> list[Object]:
        """The specs of all pods."""
        workloads = self.all("Deployment") + self.all("StatefulSet")
        return [found["spec"]["template"]["spec"] for found in workloads]


def render(values: Mapping[str, Any] | None = None) -> Rendering:
    """Render with these values. Raises RefusedError; skips where there is no helm."""
    return Rendering(template(yaml.safe_dump(dict(values or {}))))


@cache
def template(values: str) -> str:
    """Helm's output. Kept: a rendering takes most of a second."""
    helm = find_helm()
    if helm is None:
        pytest.skip("needs helm, on the PATH or as `make e2e` builds it")
    command = [helm, "template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--values", "-"]
    done = subprocess.run(
        [*command, "--kube-version", "1.34.0"],
        input=values,
        env={**os.environ, "KUBECONFIG": os.devnull},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    if done.returncode:
        raise RefusedError(done.stderr)
    return done.stdout


def faults(pod: Object) -> Iterator[str]:
    """What keeps a pod out of a restricted namespace, or lets it write to its root file system.

    https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
    """
    context = pod.get("securityContext", {})
    if context.get("runAsNonRoot") is not True or not context.get("runAsUser"):
        yield "may run as root"
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "has no seccomp profile"
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(name):
            yield name
    for volume in pod.get("volumes", ()):
        if not volume.keys() - {"name"} <= ALLOWED_VOLUMES:
            yield f"volume {volume['name']} is of a kind that is not allowed"
    for container in [*pod["containers"], *pod.get("initContainers", ())]:
        security = container.get("securityContext", {})
        if security.get("allowPrivilegeEscalation") is not False:
            yield f"{container['name']}: may gain rights"
        if security.get("capabilities") != {"drop": ["ALL"]}:
            yield f"{container['name']}: has capabilities"
        if security.get("readOnlyRootFilesystem") is not True:
            yield f"{container['name']}: its root file system is writable"


def documents(path: Path) -> list[Object]:
    """The documents of a YAML file."""
    return [found for found in yaml.safe_load_all(path.read_text("utf-8")) if found]
