"""Credentials of Redis outlive a release, and nobody restarts a worker for renewed ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from tests.e2e.rig.cluster import Cluster
from tests.e2e.support.documents import task_queue
from tests.e2e.support.errands import Errands
from tests.e2e.support.installation import NAMESPACE, REDIS, SECRET, Installation
from tests.e2e.support.store import open_store
from tests.e2e.support.workspace import Workspace, open_workspace

pytestmark = pytest.mark.expected_seconds(110)

USER = "errands"


@pytest.fixture
def served(installation: Installation, namespace: str, errands: Errands) -> Iterator[Workspace]:
    """With a worker that stays."""
    with open_workspace(installation, namespace) as workspace:
        workspace.apply(task_queue("errands", errands.first, minReplicas=1, maxReplicas=1))
        workspace.wait_for_pods("errands", 1)
        yield workspace


@contextmanager
def root_of_redis(installation: Installation) -> Iterator[Any]:
    with installation.forwarded_url() as url, redis.Redis.from_url(url) as client:
        yield client


def give_login(client: Any, password: str) -> None:
    """The user has this password alone, and every connection of it has ended."""
    rules = ("reset", "on", f">{password}", "allkeys", "allchannels", "+@all")
    client.execute_command("ACL", "SETUSER", USER, *rules)
    client.execute_command("CLIENT", "KILL", "USER", USER)


def write_secret(workspace: Workspace, password: str) -> None:
    """As whoever renews it."""
    url = f"redis://{USER}:{password}@{REDIS}.{NAMESPACE}.svc:6379/0"
    patch = json.dumps({"stringData": {"url": url}})
    workspace.kubectl("patch", "secret", SECRET, "--type", "merge", "--patch", patch)


def only_pod(workspace: Workspace) -> tuple[str, int]:
    """Its name, and how often its container was started again."""
    (pod,) = workspace.pods("errands")
    status: dict[str, Any] = pod["status"]["containerStatuses"][0]
    return pod["metadata"]["name"], status["restartCount"]


def test_a_renewed_secret_is_read_by_the_workers_that_run(
    served: Workspace, installation: Installation, cluster: Cluster
) -> None:
    with root_of_redis(installation) as client:
        give_login(client, "first")
        write_secret(served, "first")
        # Variables are of the start: from here on the worker is one that was given the first.
        served.kubectl("delete", "pod", only_pod(served)[0])
        served.wait_for_pods("errands", 1)
        before = only_pod(served)
        served.wait_for_condition("taskqueue", "errands", "Ready", "True", reason="Served")

        give_login(client, "second")

        told = served.wait_for_condition(
            "taskqueue", "errands", "WorkersHealthy", "False", reason="WorkersSilent", within=90
        )
        for words in (before[0], "refuses the credentials", f"it reads Secret {SECRET}"):
            assert words in told["message"]
        assert "NetworkPolicy" not in told["message"]

        write_secret(served, "second")
        # The kubelet looks after mounted Secrets once a minute, and whenever a pod changes.
        served.kubectl("annotate", "pod", before[0], "tests/renewed=yes")
        served.wait_for_condition(
            "taskqueue", "errands", "Ready", "True", reason="Served", within=120
        )
        (job,) = served.store.enqueue("errands", "echo", [{"text": "again"}])
        assert served.store.result("errands", job, within=30)["text"] == "again"
        assert only_pod(served) == before
        client.execute_command("ACL", "DELUSER", USER)


def test_a_release_that_comes_back_finds_its_password_and_its_workers(
    served: Workspace, installation: Installation, cluster: Cluster
) -> None:
    url, before = installation.url(), only_pod(served)
    (old,) = served.store.enqueue("errands", "echo", [{"text": "before"}])
    assert served.store.result("errands", old, within=30)["text"] == "before"

    installation.uninstall_release()
    assert only_pod(served) == before
    installation.install_release()

    assert installation.url() == url
    with open_store(installation, served.namespace) as store:
        assert store.result("errands", old, within=30)["text"] == "before"
        (job,) = store.enqueue("errands", "echo", [{"text": "after"}])
        assert store.result("errands", job, within=90)["text"] == "after"
    assert only_pod(served) == before
    served.wait_for_condition_true("taskqueue", "errands")
