"""The images of the errands: the application in ../apps, in two editions."""

from __future__ import annotations

from dataclasses import dataclass

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.images import ROOT, build_image, load_images

APPS = ROOT / "tests/e2e/apps"


@dataclass(frozen=True)
class Errands:
    """References that pods of the cluster can name."""

    first: str
    second: str


def bring_errands(cluster: Cluster, worker: str, registry: str | None) -> Errands:
    """Build both on the image `worker` and load them. Raises RigError."""
    machine = cluster.machine
    with machine.alone():
        first = build_image(machine, APPS / "errands", "errands", foundation=worker)
        second = build_image(machine, APPS / "second-edition", "errands-second", foundation=first)
        return Errands(*load_images(cluster, [first, second], registry))
