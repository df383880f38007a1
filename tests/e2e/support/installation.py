"""One installation of the chart for all scenarios; a test may ask for a cluster without it.

It is called as docs/kubernetes.md calls it, so that CRDs which an earlier run left are taken up.
Removing it removes everything: a failed run, or a cluster that is kept, never decides the next.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.commands import CommandError
from tests.e2e.rig.dump import dump
from tests.e2e.rig.images import ROOT, Images, split_reference
from tests.e2e.rig.machine import PublicImages

RELEASE = "tidework"
NAMESPACE = "tidework"
OPERATOR = "tidework-operator"
REDIS = "tidework-redis"
SECRET = "tidework-redis-default"
CRDS = ("taskqueues.tidework.dev", "crontasks.tidework.dev")


class InstallationError(Exception):
    """The chart could not be installed; the text shows the cluster."""


class Installation:
    """Installed by `ensure`, taken away by `remove`; both may be called at any time."""

    def __init__(self, cluster: Cluster, images: Images, public_images: PublicImages) -> None:
        self.cluster = cluster
        self._images = images
        self._public_images = public_images
        self._stack = ExitStack()
        self._failure = ""
        self._is_installed = False

    def ensure(self) -> None:
        """Have it installed. Raises InstallationError; after a failure at once."""
        if self._is_installed:
            return
        if self._failure:
            raise InstallationError(self._failure)
        try:
            remove_everything(self.cluster)
            # its deletion is part of remove_everything
            self._stack.enter_context(self.cluster.namespace(NAMESPACE, keep=lambda: True))
            self.install_release()
        except CommandError as error:
            self._failure = f"{error}\n{dump(self.cluster, [NAMESPACE])}"
            self._stack.close()
            raise InstallationError(self._failure) from error
        self._is_installed = True

    def remove(self) -> None:
        """Leave nothing of it, nor of any other installation by its name."""
        self._is_installed = False
        remove_everything(self.cluster)
        self._stack.close()

    def install_release(self) -> None:
        """`helm install`, and what has to be there afterwards is."""
        install = ("install", RELEASE, str(ROOT / "charts/tidework"), "--namespace", NAMESPACE)
        # written as JSON, which is YAML
        values = json.dumps(self._values())
        self.cluster.helm(*install, "--values", "-", "--wait", "--timeout", "180s", input=values)

    def uninstall_release(self) -> None:
        """`helm uninstall`: what outlives a release stays."""
        self.cluster.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")

    def url(self) -> str:
        """Of Redis, as the workers reach it."""
        secret = self.cluster.kubectl_json("get", "secret", SECRET, "--namespace", NAMESPACE)
        return base64.b64decode(secret["data"]["url"]).decode()

    @contextmanager
    def forwarded_url(self) -> Iterator[str]:
        """Of Redis, for this process."""
        with self.cluster.port_forward(NAMESPACE, f"service/{REDIS}", 6379) as port:
            yield local_url(self.url(), port)

    def admit(self, namespace: str) -> None:
        """Give workers of a namespace the Secret with which they reach Redis."""
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET, "namespace": namespace},
            "stringData": {"url": self.url()},
        }
        self.cluster.kubectl("create", "--filename", "-", input=json.dumps(secret))

    def _values(self) -> dict[str, Any]:
        operator = split_reference(self._images.operator)
        redis = split_reference(self._public_images.redis)
        return {
            "image": {"repository": operator[0], "tag": operator[1]},
            "redis": {
                "image": {"repository": redis[0], "tag": redis[1]},
                "storage": {"size": "64Mi"},
            },
        }


def local_url(url: str, port: int) -> str:
    """The same Redis behind a port of this machine."""
    parts = urlsplit(url)
    credentials = f":{parts.password}@" if parts.password else ""
    return f"redis://{credentials}127.0.0.1:{port}{parts.path}"


def remove_everything(cluster: Cluster, *namespaces: str) -> None:
    """As docs/kubernetes.md says it, also the leftovers of a run that was broken off.

    namespaces: those to delete besides.
    """
    there = cluster.kubectl("get", "crd", *CRDS, "--ignore-not-found", "--output", "name")
    if there:
        kinds = ",".join(name.partition("/")[2] for name in there.split())
        cluster.kubectl("delete", kinds, "--all", "--all-namespaces", "--timeout", "60s", within=70)
    cluster.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--ignore-not-found", "--wait")
    cluster.kubectl("delete", "crd", *CRDS, "--ignore-not-found", "--timeout", "60s", within=70)
    cluster.kubectl(
        *("delete", "namespace", NAMESPACE, *namespaces, "--ignore-not-found"),
        *("--timeout", "120s"),
        within=130,
    )
