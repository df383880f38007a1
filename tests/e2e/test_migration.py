"""`kubectl tidework migrate-cronjob`: a CronJob of the cluster, taken over as the docs say."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.images import build_image, load_images
from tests.e2e.rig.options import Options
from tests.e2e.support.errands import Errands
from tests.e2e.support.workspace import Workspace

pytestmark = pytest.mark.expected_seconds(75)

NAME = "nightly"
DOCKERFILE = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
COPY cronjob_tasks.py .
"""
SUSPEND = '{"spec": {"suspend": true}}'


def cronjob(image: str) -> dict[str, Any]:
    """Every minute; what it prints at last is JSON, so that as a task it has a result."""
    container = {
        "name": "main",
        "image": image,
        "command": ["/bin/sh", "-c"],
        "args": ['echo begun; echo "{\\"said\\": \\"$(GREETING)\\", \\"from\\": \\"$NODE\\"}"'],
        "env": [
            {"name": "GREETING", "value": "Good night"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "resources": {"limits": {"memory": "256Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": NAME},
        "spec": {
            "schedule": "* * * * *",
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {
                "spec": {
                    "backoffLimit": 1,
                    "activeDeadlineSeconds": 120,
                    "template": {"spec": pod},
                }
            },
        },
    }


def test_a_cronjob_is_taken_over_and_every_minute_has_one_run(
    workspace: Workspace, errands: Errands, cluster: Cluster, options: Options, tmp_path: Path
) -> None:
    workspace.apply(cronjob(errands.first))
    before = workspace.get("cronjob", NAME)
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)

    said = workspace.kubectl(
        *("tidework", "migrate-cronjob", NAME, "--output", str(tmp_path)),
        *("--image", "to-be-built"),
    )

    assert f"CronJob {NAME} is in {tmp_path}" in said
    assert workspace.get("cronjob", NAME)["spec"] == before["spec"], "nothing is changed there"
    with cluster.machine.alone():
        image = build_image(cluster.machine, tmp_path, "migrated", foundation=errands.first)
        (image,) = load_images(cluster, [image], options.registry)
    documents = (tmp_path / "tidework.yaml").read_text().replace("to-be-built", image)
    # both steps within one minute, before the next run
    workspace.wait_for(lambda: datetime.now(UTC).second < 50, "the minute is young", within=30)
    workspace.kubectl("patch", "cronjob", NAME, "--patch", SUSPEND)
    workspace.kubectl("apply", "--filename", "-", input=documents)

    workspace.wait_for_condition_true("taskqueue", NAME)
    workspace.kubectl("tidework", "run", NAME, "--wait")
    workspace.wait_for(
        lambda: workspace.get("crontask", NAME)["status"].get("lastResult") == "succeeded",
        "a fire of the CronTask has succeeded",
        within=90,
    )
    status = workspace.get("crontask", NAME)["status"]
    nodes = cluster.nodes()
    for job in (status["runNow"]["job"], status["lastJob"]):
        result = workspace.store.result(NAME, job, within=60)
        assert result["said"] == "Good night"
        assert result["from"] in nodes
    (pod,) = workspace.pods(NAME)
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": "256Mi"}
    # what the CronJob may have fired before is another minute's
    left = workspace.get("cronjob", NAME)
    assert left["spec"]["suspend"] is True
    if (last := left["status"].get("lastScheduleTime")) is not None:
        assert datetime.fromisoformat(last) < datetime.fromisoformat(status["lastScheduleTime"])
