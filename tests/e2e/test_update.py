"""A new image under load: pods are replaced while jobs come and go, and no job is lost."""

from __future__ import annotations

import pytest

from tests.e2e.rig.cluster import Cluster
from tests.e2e.support.documents import task_queue
from tests.e2e.support.errands import Errands
from tests.e2e.support.installation import Installation
from tests.e2e.support.pod_watch import PodWatch
from tests.e2e.support.store import open_store
from tests.e2e.support.workspace import Workspace
from tidework import JobState

pytestmark = pytest.mark.expected_seconds(60)


def test_an_image_update_under_load_loses_nothing(
    workspace: Workspace, errands: Errands, installation: Installation, cluster: Cluster
) -> None:
    workspace.apply(task_queue("errands", errands.first, slots=2, minReplicas=2, maxReplicas=2))
    workspace.wait_for_pods("errands", 2)
    jobs: list[str] = []

    def keep_busy() -> None:
        if workspace.store.stats("errands").unfinished < 10:
            params = [{"seconds": 0.1 + n % 5} for n in range(10)]
            jobs.extend(workspace.store.enqueue("errands", "note", params))

    def editions() -> set[str]:
        return {entry["edition"] for entry in workspace.store.journal("ended")}

    def is_busy_with_the_first() -> bool:
        keep_busy()
        return editions() == {"first"}

    def is_replaced() -> bool:
        keep_busy()
        pods = workspace.items("pods", queue="errands")
        images = {pod["spec"]["containers"][0]["image"] for pod in pods}
        return images == {errands.second} and len(workspace.ready_pods("errands")) == 2

    workspace.wait_for(is_busy_with_the_first, "jobs end in the first edition")
    with (
        open_store(installation, workspace.namespace) as other_store,
        PodWatch(cluster, workspace.namespace, "errands", other_store) as watch,
    ):
        workspace.patch("errands", {"spec": {"image": errands.second}})
        workspace.wait_for(is_replaced, "both pods run the second edition", within=120)
        workspace.wait_for_end("errands", within=60)

    # a rollout may tell busy pods to go, unlike scaling: here they were busy
    assert len(watch.deleted) == 2
    assert any(watch.deleted.values())
    assert editions() == {"first", "second"}
    assert sorted(workspace.store.ids("errands", JobState.SUCCEEDED)) == sorted(jobs)
    # pods end in order: they finish what they hold, so nothing runs twice either
    assert sorted(entry["job"] for entry in workspace.store.journal("ended")) == sorted(jobs)
    assert workspace.store.stats("errands").counters.get("lost", 0) == 0
