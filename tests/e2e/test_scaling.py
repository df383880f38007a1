"""Replicas follow the backlog, 0 to the most and back, and never at the cost of a job."""

from __future__ import annotations

import pytest

from tests.e2e.rig.cluster import Cluster
from tests.e2e.support.documents import AT_ONCE, task_queue
from tests.e2e.support.errands import Errands
from tests.e2e.support.installation import Installation
from tests.e2e.support.pod_watch import PodWatch
from tests.e2e.support.store import open_store
from tests.e2e.support.workspace import Workspace
from tidework import JobState

pytestmark = pytest.mark.expected_seconds(100)

SHORT = 480
LONG = 20
MOST = 4


def test_500_jobs_scale_from_zero_to_the_most_and_back_and_no_lease_is_cut_off(
    workspace: Workspace, errands: Errands, installation: Installation, cluster: Cluster
) -> None:
    scaling = {"idleSeconds": 5, "behavior": AT_ONCE}
    workspace.apply(
        task_queue("errands", errands.first, slots=2, maxReplicas=MOST, scaling=scaling)
    )
    workspace.wait_for_condition_true("taskqueue", "errands")
    assert workspace.items("pods", queue="errands") == []

    with (
        open_store(installation, workspace.namespace) as other_store,
        PodWatch(cluster, workspace.namespace, "errands", other_store) as watch,
    ):
        jobs = workspace.store.enqueue("errands", "note", [{"seconds": 0.05}] * SHORT)
        # they come last, and some run on when few are left: those pods have to stay
        jobs += workspace.store.enqueue(
            "errands", "note", [{"seconds": 4 + n % 7} for n in range(LONG)]
        )
        workspace.wait_for_end("errands", within=150)
        workspace.wait_for_pods("errands", 0, within=90)

    assert watch.peak == MOST
    assert len(watch.deleted) >= MOST
    assert {pod: leases for pod, leases in watch.deleted.items() if leases} == {}
    stats = workspace.store.stats("errands")
    assert sorted(workspace.store.ids("errands", JobState.SUCCEEDED)) == sorted(jobs)
    assert sorted(entry["job"] for entry in workspace.store.journal("ended")) == sorted(jobs)
    assert stats.counters.get("lost", 0) == 0
    reasons = workspace.kubectl("events", "--for", "taskqueue/errands")
    assert f"replicas 0 -> {MOST}" in reasons


def test_kubectl_scale_pins_the_replicas_until_the_pin_is_removed(
    workspace: Workspace, errands: Errands
) -> None:
    workspace.apply(
        task_queue("errands", errands.first, scaling={"idleSeconds": 1, "behavior": AT_ONCE})
    )
    workspace.wait_for_condition_true("taskqueue", "errands")

    workspace.kubectl("scale", "taskqueue/errands", "--replicas=2")

    workspace.wait_for_pods("errands", 2)
    pinned = workspace.wait_for_condition(
        "taskqueue", "errands", "ScalingActive", "False", reason="Pinned"
    )
    assert "spec.replicas is 2" in pinned["message"]
    assert "remove it to follow the load" in pinned["message"]
    scale = workspace.cluster.kubectl_json(
        *("get", "taskqueue", "errands", "--subresource", "scale"),
        *("--namespace", workspace.namespace),
    )
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)
    selected = workspace.kubectl(
        "get", "pods", "--selector", scale["status"]["selector"], "--output", "name"
    )
    assert len(selected.split()) == 2

    workspace.patch("errands", {"spec": {"replicas": None}})

    workspace.wait_for_pods("errands", 0, within=90)
    workspace.wait_for_condition(
        "taskqueue", "errands", "ScalingActive", "True", reason="FollowsLoad"
    )
