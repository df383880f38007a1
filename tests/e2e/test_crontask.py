"""A CronTask fires, its job runs in a pod, and what it gave back is read."""

from __future__ import annotations

import json

import pytest

from tests.e2e.support.documents import cron_task, task_queue
from tests.e2e.support.errands import Errands
from tests.e2e.support.workspace import Workspace

NO_PODS = "type=Warning,involvedObject.kind!=Pod"
pytestmark = pytest.mark.expected_seconds(45)


def test_its_job_runs_in_a_pod_and_its_result_is_read_back(
    workspace: Workspace, errands: Errands
) -> None:
    workspace.apply(
        task_queue("errands", errands.first, maxReplicas=1),
        cron_task("greeting", "errands", "echo", params={"text": "Good morning"}, every="20s"),
    )

    workspace.wait_for_condition_true("taskqueue", "errands")
    workspace.wait_for_condition_true("crontask", "greeting")
    workspace.wait_for(
        lambda: workspace.get("crontask", "greeting")["status"].get("lastResult") == "succeeded",
        "the last run of the CronTask has succeeded",
        within=90,
    )
    status = workspace.get("crontask", "greeting")["status"]
    result = workspace.store.result("errands", status["lastJob"], within=30)
    pods = [pod["metadata"]["name"] for pod in workspace.items("pods", queue="errands")]
    assert result["text"] == "Good morning"
    assert result["pod"] in pods
    assert status["verdicts"]["enqueued"] >= 1
    assert len(status["nextScheduleTimes"]) == 5
    warnings = workspace.kubectl("get", "events", "--field-selector", NO_PODS, "--output", "json")
    told = [(each["reason"], each["message"]) for each in json.loads(warnings)["items"]]
    assert told == []


def test_workers_are_what_the_task_queue_says_and_restricted(
    workspace: Workspace, errands: Errands
) -> None:
    queue = task_queue(
        "errands",
        errands.first,
        slots=2,
        minReplicas=1,
        env=[{"name": "COLOUR", "value": "blue"}],
        resources={"requests": {"memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        template={"metadata": {"labels": {"team": "mail"}}},
    )
    workspace.apply(queue)

    workspace.wait_for_pods("errands", 1)
    (pod,) = workspace.ready_pods("errands")
    (container,) = pod["spec"]["containers"]
    # the namespace enforces `restricted`: the pod is there, so it is
    assert pod["metadata"]["labels"]["team"] == "mail"
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert {"name": "COLOUR", "value": "blue"} in container["env"]
    assert container["resources"]["limits"] == {"memory": "512Mi"}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    (account,) = workspace.items("serviceaccounts", queue="errands")
    assert account["automountServiceAccountToken"] is False
    (budget,) = workspace.items("poddisruptionbudgets", queue="errands")
    assert budget["status"]["expectedPods"] == 1
    (policy,) = workspace.items("networkpolicies", queue="errands")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
