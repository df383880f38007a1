"""What is wrong is told where a user looks: `kubectl describe` names the reason and the remedy.

All troubles share one namespace and are made at once; each test waits for its own.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

import pytest

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.commands import CommandError
from tests.e2e.support.documents import Document, cron_task, task_queue
from tests.e2e.support.errands import Errands
from tests.e2e.support.installation import Installation
from tests.e2e.support.workspace import Workspace, open_workspace

pytestmark = pytest.mark.expected_seconds(80)

NOWHERE = "registry.invalid/errands:1"


def troubles(image: str) -> list[Document]:
    """TaskQueues that can't be served and CronTasks that can't fire, and one of each that can."""
    wanted = {"minReplicas": 1, "maxReplicas": 1}
    return [
        task_queue("well", image),
        task_queue("wrong-image", NOWHERE, **wanted),
        task_queue("too-large", image, resources={"requests": {"cpu": "1000"}}, **wanted),
        task_queue("crash-loop", image, app="errands.unfinished", **wanted),
        task_queue("no-connection", image, redis="elsewhere", **wanted),
        task_queue(
            "forbidden",
            image,
            template={"spec": {"containerSecurityContext": {"allowPrivilegeEscalation": True}}},
            **wanted,
        ),
        task_queue(
            "refused", image, template={"spec": {"affinity": {"nodeAffinity": 5}}}, **wanted
        ),
        cron_task("well", "well", "echo", schedule="0 6 * * *"),
        cron_task("no-queue", "wel", "echo", every="1h"),
        cron_task("no-such-day", "well", "echo", schedule="0 6 31 4 *"),
    ]


@pytest.fixture(scope="module")
def troubled(chart: Installation, errands: Errands) -> Iterator[Workspace]:
    chart.ensure()
    with (
        chart.cluster.namespace(f"troubles-{secrets.token_hex(2)}") as namespace,
        open_workspace(chart, namespace) as workspace,
    ):
        workspace.apply(*troubles(errands.first))
        yield workspace


@pytest.mark.parametrize(
    ("name", "type_", "reason", "remedies"),
    [
        (
            "refused",
            "Ready",
            "SpecRefused",
            ["spec.template.spec.affinity.nodeAffinity: has to be a mapping"],
        ),
        (
            "wrong-image",
            "WorkersHealthy",
            "ImagePullFailed",
            [NOWHERE, "correct spec.image", "spec.template.spec.imagePullSecrets"],
        ),
        (
            "too-large",
            "WorkersHealthy",
            "Unschedulable",
            ["Insufficient cpu", "add or free nodes, or lower spec.resources.requests"],
        ),
        (
            "crash-loop",
            "WorkersHealthy",
            "CrashLoop",
            ["errands.unfinished", "errands_that_nobody_wrote", "logs --previous"],
        ),
        (
            "no-connection",
            "RedisReachable",
            "ConnectionMissing",
            ["no Redis connection 'elsewhere' (it has: default)", "add it to the operator's"],
        ),
        (
            "no-connection",
            "WorkersHealthy",
            "RedisSecretMissing",
            ["create secret generic tidework-redis-elsewhere"],
        ),
        (
            "forbidden",
            "WorkersHealthy",
            "PodSecurityViolated",
            ["allowPrivilegeEscalation", "remove what the namespace forbids from spec.template"],
        ),
    ],
)
def test_a_task_queue_tells_its_trouble(
    troubled: Workspace, cluster: Cluster, name: str, type_: str, reason: str, remedies: list[str]
) -> None:
    condition = troubled.wait_for_condition(
        "taskqueue", name, type_, "False", reason=reason, within=90
    )

    for words in remedies:
        assert words in condition["message"]
    troubled.wait_for(
        lambda: troubled.condition("taskqueue", name, "Ready").get("status") == "False",
        f"{name} is not ready",
    )
    assert_described(troubled, "taskqueue", name, condition["message"])


@pytest.mark.parametrize(
    ("name", "type_", "reason", "remedies"),
    [
        (
            "no-queue",
            "QueueFound",
            "QueueMissing",
            ["no TaskQueue 'wel'", "well", "create it, or correct spec.queue"],
        ),
        (
            "no-such-day",
            "ScheduleValid",
            "ScheduleInvalid",
            ["spec.schedule", "would never fire", "April, June, September and November have 30"],
        ),
    ],
)
def test_a_cron_task_tells_its_trouble(
    troubled: Workspace, cluster: Cluster, name: str, type_: str, reason: str, remedies: list[str]
) -> None:
    condition = troubled.wait_for_condition(
        "crontask", name, type_, "False", reason=reason, within=30
    )

    for words in remedies:
        assert words in condition["message"]
    assert troubled.condition("crontask", name, "Ready")["status"] == "False"
    assert_described(troubled, "crontask", name, condition["message"])
    events = events_of(troubled, "crontask", name)
    assert reason in events
    assert remedies[-1] in events


def test_what_the_api_server_refused_is_never_scaled(troubled: Workspace, cluster: Cluster) -> None:
    condition = troubled.wait_for_condition(
        "taskqueue", "refused", "ScalingActive", "False", reason="NoDeployment"
    )
    assert "has no template yet" in condition["message"]

    (deployment,) = troubled.items("deployments", queue="refused")
    assert deployment["spec"]["replicas"] == 0
    assert troubled.items("pods", queue="refused") == []


def test_those_beside_them_are_served(troubled: Workspace, cluster: Cluster) -> None:
    troubled.wait_for_condition("taskqueue", "well", "Ready", "True", reason="ScaledToZero")
    troubled.wait_for_condition("crontask", "well", "Ready", "True", reason="Scheduled")
    (job,) = troubled.store.enqueue("well", "echo", [{"text": "all is well"}])
    assert troubled.store.result("well", job, within=60)["text"] == "all is well"


@pytest.mark.parametrize(
    "name", ["refused", "wrong-image", "too-large", "crash-loop", "no-connection"]
)
def test_a_warning_tells_of_it_too(troubled: Workspace, cluster: Cluster, name: str) -> None:
    def told() -> bool:
        ready = troubled.condition("taskqueue", name, "Ready")
        events = events_of(troubled, "taskqueue", name)
        assert ready["status"] == "False"
        assert f"Warning {ready['reason']}" in events, events
        return True

    troubled.wait_for(told, f"an event tells why {name} is not ready", within=90)


def test_what_is_mended_recovers(troubled: Workspace, errands: Errands, cluster: Cluster) -> None:
    troubled.wait_for_condition(
        "taskqueue", "wrong-image", "WorkersHealthy", "False", reason="ImagePullFailed", within=90
    )

    troubled.patch("wrong-image", {"spec": {"image": errands.first}})

    troubled.wait_for_condition(
        "taskqueue", "wrong-image", "Ready", "True", reason="Served", within=90
    )


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            task_queue("refused-at-once", "errands:1", minReplicas=3, maxReplicas=2),
            "maxReplicas is below minReplicas; raise it, or lower",
        ),
        (task_queue("refused-at-once", None), "spec.image: .*name the image with the application"),
        (
            cron_task("refused-at-once", "well", "echo", schedule="0 25 * * *"),
            "spec.schedule: .*hours 0-23",
        ),
        (
            cron_task(
                "refused-at-once", "well", "echo", schedule="0 6 * * *", timeZone="Europe/Berlim"
            ),
            "spec.timeZone: .*unknown time zone Europe/Berlim.*use an IANA name",
        ),
    ],
)
def test_a_document_that_cannot_be_right_is_not_even_taken(
    troubled: Workspace, cluster: Cluster, document: Document, said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        troubled.apply(document)
    shown = troubled.kubectl("get", "tidework", "--output", "name")
    assert "refused-at-once" not in shown


def test_a_quota_that_is_used_up_is_told(
    installation: Installation, namespace: str, errands: Errands
) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "one"},
        "spec": {"hard": {"pods": "1"}},
    }
    with open_workspace(installation, namespace) as workspace:
        workspace.kubectl("create", "--filename", "-", input=json.dumps(quota))
        workspace.apply(task_queue("errands", errands.first, minReplicas=2))

        condition = workspace.wait_for_condition(
            "taskqueue", "errands", "WorkersHealthy", "False", reason="QuotaExceeded"
        )
        assert "raise the ResourceQuota of the namespace, or lower" in condition["message"]
        assert_described(workspace, "taskqueue", "errands", condition["message"])


def assert_described(workspace: Workspace, kind: str, name: str, message: str) -> None:
    """`kubectl describe` shows the condition's message."""
    described = " ".join(workspace.kubectl("describe", kind, name).split())
    assert f"Message: {' '.join(message.split())}" in described


def events_of(workspace: Workspace, kind: str, name: str) -> str:
    """What `kubectl describe` shows of events, blanks made one."""
    _, _, events = workspace.kubectl("describe", kind, name).rpartition("\nEvents:")
    return " ".join(events.split())
