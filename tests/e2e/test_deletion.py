"""Deleting is never held up: no finalizers, and what belongs to a TaskQueue goes with it."""

from __future__ import annotations

import secrets

import pytest

from tests.e2e.rig.cluster import Cluster
from tests.e2e.support.documents import cron_task, task_queue
from tests.e2e.support.errands import Errands
from tests.e2e.support.installation import Installation
from tests.e2e.support.workspace import Workspace, open_workspace

pytestmark = pytest.mark.expected_seconds(100)

KINDS = "taskqueues,crontasks,deployments,serviceaccounts,poddisruptionbudgets,networkpolicies,pods"
CHILDREN = {"Deployment", "ServiceAccount", "PodDisruptionBudget", "NetworkPolicy", "Pod"}


def start_jobs(workspace: Workspace, image: str) -> None:
    """A queue that is busy, with a CronTask that feeds it."""
    workspace.apply(
        task_queue("errands", image, slots=2, minReplicas=1, hardTimeoutSeconds=10),
        cron_task("feed", "errands", "note", params={"seconds": 3}, every="2s"),
    )
    workspace.store.enqueue("errands", "note", [{"seconds": 4}] * 4)
    workspace.wait_for(lambda: workspace.store.journal("started"), "a job has started")


def test_nothing_has_a_finalizer_and_a_task_queue_takes_its_objects_with_it(
    workspace: Workspace, errands: Errands
) -> None:
    start_jobs(workspace, errands.first)
    workspace.wait_for_condition_true("crontask", "feed")
    belongings = workspace.items(KINDS, queue="errands")
    assert {found["kind"] for found in belongings} == CHILDREN
    owned = [*belongings, *workspace.items("taskqueues,crontasks")]
    assert [found["kind"] for found in owned if found["metadata"].get("finalizers")] == []

    # it returns once the object is gone; its pods may still finish what they hold
    workspace.kubectl("delete", "taskqueue", "errands", "--timeout", "20s")

    workspace.wait_for(
        lambda: workspace.items(KINDS, queue="errands") == [], "its objects are gone", within=90
    )
    missing = workspace.wait_for_condition(
        "crontask", "feed", "QueueFound", "False", reason="QueueMissing"
    )
    assert "create it, or correct spec.queue" in missing["message"]
    workspace.kubectl("delete", "crontask", "feed", "--timeout", "20s")


def test_a_task_queue_that_comes_back_is_served_again(
    workspace: Workspace, errands: Errands
) -> None:
    start_jobs(workspace, errands.first)

    workspace.kubectl("delete", "taskqueue", "errands", "--timeout", "20s")
    workspace.apply(task_queue("errands", errands.first, minReplicas=1, hardTimeoutSeconds=10))

    # jobs outlive their TaskQueue: deletionPolicy Retain
    workspace.wait_for_condition_true("taskqueue", "errands")
    workspace.kubectl("delete", "crontask", "feed", "--timeout", "20s")
    workspace.wait_for_end("errands", within=90)
    uid = workspace.get("taskqueue", "errands")["metadata"]["uid"]
    (deployment,) = workspace.items("deployments", queue="errands")
    assert deployment["metadata"]["ownerReferences"][0]["uid"] == uid


def test_a_namespace_with_running_jobs_can_be_deleted(
    installation: Installation, errands: Errands, cluster: Cluster
) -> None:
    name = f"going-{secrets.token_hex(2)}"
    with (
        cluster.namespace(name) as namespace,
        open_workspace(installation, namespace) as workspace,
    ):
        start_jobs(workspace, errands.first)

        # at most the grace of the workers (20 s and 15 s) and what the namespace itself takes
        cluster.kubectl("delete", "namespace", name, "--timeout", "120s", within=130)

    operators = cluster.kubectl_json("get", "pods", "--namespace", "tidework")["items"]
    assert [pod["status"]["phase"] for pod in operators] == ["Running"] * len(operators) != []
