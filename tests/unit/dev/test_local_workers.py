"""Worker processes of `tidework dev`: a start that fails is waited out, not passed on."""

from __future__ import annotations

from pathlib import Path

from tidework.dev.local_workers import LocalWorkers
from tidework.manifests import read_manifests

QUEUE = """
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata: {name: emails}
spec: {app: shop, maxReplicas: 2}
"""


def test_a_folder_that_is_gone_is_a_failed_start(tmp_path: Path) -> None:
    (tmp_path / "queue.yaml").write_text(QUEUE)
    (queue,) = read_manifests((tmp_path / "queue.yaml",), namespace="default").queues
    workers = LocalWorkers(queue, tmp_path / "gone", {})

    workers.scale(2, ())

    assert workers.alive == 0
    (failed,) = workers.reap()
    assert "cannot be started" in failed.cause
    assert failed.wait > 0
    workers.scale(2, ())
    assert workers.reap() == [], "not before the wait is over"
