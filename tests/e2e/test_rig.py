"""The rig itself: the cluster answers, names resolve, restricted pods run, a claim binds."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.commands import CommandError
from tests.e2e.rig.machine import PublicImages
from tests.e2e.rig.waiting import wait_until

pytestmark = pytest.mark.expected_seconds(45)

RESTRICTED_POD = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "fsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
RESTRICTED_CONTAINER = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def pod(name: str, image: str, *command: str, **spec: Any) -> dict[str, Any]:
    """A pod that the restricted profile admits, running `command`."""
    container = {
        "name": "main",
        "image": image,
        "command": list(command),
        "securityContext": RESTRICTED_CONTAINER,
        "volumeMounts": [
            {"name": v["name"], "mountPath": "/data"} for v in spec.get("volumes", [])
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "securityContext": RESTRICTED_POD,
            "containers": [container],
            **spec,
        },
    }


def create(cluster: Cluster, namespace: str, *documents: dict[str, Any]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    cluster.kubectl("create", "--namespace", namespace, "--filename", "-", input=text)


def output(cluster: Cluster, namespace: str, name: str) -> str:
    """What the pod printed, once it has succeeded."""

    def phase() -> str:
        found: str = cluster.kubectl_json("get", "pod", name, "--namespace", namespace)["status"][
            "phase"
        ]
        return found

    wait_until(
        lambda: phase() in ("Succeeded", "Failed"), within=60, describe=f"pod {name} has ended"
    )
    assert phase() == "Succeeded"
    return cluster.kubectl("logs", name, "--namespace", namespace)


def test_the_cluster_answers(cluster: Cluster) -> None:
    nodes = cluster.kubectl_json("get", "nodes")["items"]

    ready = [
        condition["status"]
        for node in nodes
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    ]
    assert ready == ["True"] * len(nodes) != []


def test_helm_reaches_it(cluster: Cluster, namespace: str) -> None:
    assert json.loads(cluster.helm("list", "--namespace", namespace, "--output", "json")) == []


def test_a_restricted_pod_runs_and_resolves_names(
    cluster: Cluster, namespace: str, public_images: PublicImages
) -> None:
    program = (
        "import os, socket; print(os.getuid(), socket.gethostbyname('kubernetes.default.svc'))"
    )
    create(cluster, namespace, pod("names", public_images.python, "python3", "-c", program))

    service = cluster.kubectl_json("get", "service", "kubernetes", "--namespace", "default")
    assert output(cluster, namespace, "names").split() == ["65532", service["spec"]["clusterIP"]]


def test_the_namespace_refuses_a_pod_that_is_not_restricted(
    cluster: Cluster, namespace: str, public_images: PublicImages
) -> None:
    root = pod("root", public_images.python, "python3", "-c", "")
    root["spec"]["securityContext"] = {}

    with pytest.raises(CommandError, match='violates PodSecurity "restricted'):
        create(cluster, namespace, root)


def test_a_claim_binds_and_redis_keeps_data_in_it(
    cluster: Cluster, namespace: str, public_images: PublicImages
) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "64Mi"}},
        },
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    # It is found empty whoever had it before, it can be written, and a save to it succeeds.
    program = """\
        set -e
        ls -A /data
        redis-server --dir /data --daemonize yes >/dev/null
        until redis-cli ping >/dev/null 2>&1; do sleep 0.1; done
        redis-cli set key value >/dev/null
        redis-cli save
        ls /data
    """
    redis = pod("redis", public_images.redis, "sh", "-c", program, volumes=[volume])

    create(cluster, namespace, claim, redis)

    assert output(cluster, namespace, "redis").split() == ["OK", "dump.rdb"]
    bound = cluster.kubectl_json("get", "persistentvolumeclaim", "data", "--namespace", namespace)
    assert bound["status"]["phase"] == "Bound"


def test_a_port_of_a_pod_is_reached(
    cluster: Cluster, namespace: str, public_images: PublicImages
) -> None:
    command = ("python3", "-m", "http.server", "8000", "--directory", "/etc")
    create(cluster, namespace, pod("web", public_images.python, *command))
    cluster.kubectl(
        "wait", "pod/web", "--for", "condition=Ready", "--namespace", namespace, "--timeout", "60s"
    )

    with cluster.port_forward(namespace, "pod/web", 8000) as port:

        def fetched() -> bytes:
            try:
                url = f"http://127.0.0.1:{port}/os-release"
                with urllib.request.urlopen(url, timeout=10) as answer:
                    content: bytes = answer.read()
                    return content
            except OSError as error:
                raise AssertionError(error) from error

        assert b"Debian" in wait_until(fetched, within=20, describe="the web server answers")
