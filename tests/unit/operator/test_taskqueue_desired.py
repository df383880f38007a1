"""The objects of a TaskQueue, as they are asked of the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.documents import VERSION
from tidework.manifests import TaskQueue, parse_document
from tidework.settings import WorkerSettings
from tidework_operator.cluster import Kind, Object
from tidework_operator.naming import DESIRED_HASH_ANNOTATION, workers_name
from tidework_operator.taskqueues.desired import Desired, desired_objects, seed_of
from tidework_operator.taskqueues.worker_pod import RELEASE_S

UID = "6b1c7d6e"


def queue(name: str = "emails", **spec: Any) -> TaskQueue:
    found = parse_document(
        {
            "apiVersion": VERSION,
            "kind": "TaskQueue",
            "metadata": {"name": name, "namespace": "shop", "uid": UID},
            "spec": {"app": "shop.tasks", "image": "shop:1"} | spec,
        }
    )
    assert isinstance(found, TaskQueue)
    return found


def desired(**spec: Any) -> Desired:
    return desired_objects(queue(**spec))


def body(kind: Kind, **spec: Any) -> Object:
    return dict(desired(**spec).others)[kind]


def pod(**spec: Any) -> Object:
    found: Object = desired(**spec).deployment["spec"]["template"]
    return found


def container(**spec: Any) -> Object:
    (found,) = pod(**spec)["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def variables(found: Object) -> dict[str, Any]:
    assert len({each["name"] for each in found["env"]}) == len(found["env"])
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in found["env"]}


def test_every_object_has_the_name_the_labels_and_the_owner() -> None:
    found = desired()
    for each in (found.deployment, *(other for _, other in found.others)):
        metadata = each["metadata"]
        assert (metadata["name"], metadata["namespace"]) == ("tw-emails", "shop")
        assert metadata["labels"] == {
            "app.kubernetes.io/name": "tidework-worker",
            "app.kubernetes.io/managed-by": "tidework-operator",
            "tidework.dev/taskqueue": "emails",
            "tidework.dev/taskqueue-uid": UID,
        }
        assert metadata["ownerReferences"] == [
            {
                "apiVersion": "tidework.dev/v1alpha1",
                "kind": "TaskQueue",
                "name": "emails",
                "uid": UID,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ]


def test_a_name_that_is_too_long_is_cut_and_stays_its_own() -> None:
    names = [workers_name("q" * 62 + end) for end in "ab"]

    assert names[0] != names[1]
    assert all(len(name) == 63 for name in names)
    assert len(workers_name("q" * 60)) == 63
    assert workers_name("a" * 49 + "-----" + "b" * 9).count("--") == 0


def test_the_hash_changes_with_whatever_is_applied_and_with_nothing_else() -> None:
    first = desired()

    assert first.deployment["metadata"]["annotations"] == {DESIRED_HASH_ANNOTATION: first.hash}
    assert desired().hash == first.hash
    assert desired(minReplicas=1, maxReplicas=9, replicas=3).hash == first.hash
    assert desired(scaling={"idleSeconds": 5}).hash == first.hash
    assert desired(slots=2).hash != first.hash
    assert desired(image="shop:2").hash != first.hash


def test_what_is_applied_never_mentions_replicas() -> None:
    spec = desired(minReplicas=2, replicas=3).deployment["spec"]

    assert "replicas" not in spec
    assert spec["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": "tidework-worker",
        "tidework.dev/taskqueue": "emails",
    }
    assert spec["selector"]["matchLabels"].items() <= pod()["metadata"]["labels"].items()
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0},
    }
    assert spec["revisionHistoryLimit"] == 3


def test_the_seed_has_no_replicas_and_nothing_that_may_have_to_go_again() -> None:
    whole = desired(env=[{"name": "MODE", "value": "fast"}]).deployment
    seed = seed_of(whole)

    assert seed["spec"]["replicas"] == 0
    assert seed["spec"]["selector"] == whole["spec"]["selector"]
    assert seed["spec"]["template"]["spec"] == {
        "containers": [{"name": "worker", "image": "shop:1"}]
    }
    assert "annotations" not in seed["metadata"]
    assert seed["metadata"]["ownerReferences"] == whole["metadata"]["ownerReferences"]


def test_the_pod_fits_pod_security_restricted() -> None:
    spec = pod()["spec"]
    (worker,) = spec["containers"]

    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert worker["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["automountServiceAccountToken"] is False
    assert spec["serviceAccountName"] == "tw-emails"
    assert spec["enableServiceLinks"] is False
    assert [volume["name"] for volume in spec["volumes"]] == ["tidework-tmp", "tidework-redis"]
    assert spec["volumes"][0] == {"name": "tidework-tmp", "emptyDir": {}}
    assert worker["volumeMounts"][0] == {"name": "tidework-tmp", "mountPath": "/tmp"}


def test_the_url_of_redis_is_mounted_so_that_a_renewed_one_is_read() -> None:
    spec = pod(redis="cache")["spec"]
    (worker,) = spec["containers"]

    secret = {"secretName": "tidework-redis-cache", "optional": True}
    assert {"name": "tidework-redis", "secret": secret} in spec["volumes"]
    mount = {"name": "tidework-redis", "mountPath": "/etc/tidework/redis", "readOnly": True}
    assert mount in worker["volumeMounts"]
    found = variables(worker)
    assert found["TIDEWORK_REDIS_URL_FILE"] == "/etc/tidework/redis/url"
    # A missing Secret is told by the kubelet for the variable; for a volume it would only wait.
    reference = found["TIDEWORK_REDIS_URL"]["secretKeyRef"]
    assert reference == {"name": "tidework-redis-cache", "key": "url"}


def test_the_environment_makes_the_settings_of_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    found = variables(
        container(
            slots=3,
            hardTimeoutSeconds=90,
            maxGraceSeconds=400,
            leaseSeconds=20,
            recycle={"jobs": 7, "memoryMiB": 64},
            memory={"limitMiB": 700, "mostPercent": 75},
            retention={"succeededSeconds": 5, "deadSeconds": 6, "count": 8},
        )
    )
    for name, value in found.items():
        if isinstance(value, str):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("TIDEWORK_REDIS_URL", "redis://redis:6379/0")
    monkeypatch.setenv("TIDEWORK_WORKER_NAME", "tw-emails-1")
    settings = WorkerSettings.load()

    assert (settings.app, settings.queue, settings.namespace) == ("shop.tasks", ("emails",), "shop")
    assert (settings.slots, settings.hard_timeout_seconds, settings.lease_seconds) == (3, 90, 20)
    assert (settings.recycle_jobs, settings.recycle_memory_mib) == (7, 64)
    assert (settings.memory_limit_mib, settings.memory_most_percent) == (700, 75)
    assert (settings.keep_succeeded_seconds, settings.keep_dead_seconds) == (5, 6)
    assert (settings.keep_count, settings.probe_port) == (8, 8080)


def test_without_a_memory_limit_of_its_own_that_of_the_container_is_left_alone() -> None:
    assert "TIDEWORK_MEMORY_LIMIT_MIB" not in variables(container())
    own = variables(container(env=[{"name": "TIDEWORK_MEMORY_LIMIT_MIB", "value": "300"}]))
    assert own["TIDEWORK_MEMORY_LIMIT_MIB"] == "300"


@pytest.mark.parametrize(("timeout", "most"), [(90, 3600), (600, 300)])
def test_the_pod_is_given_the_grace_of_its_worker_and_a_rest(
    timeout: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = pod(hardTimeoutSeconds=timeout, maxGraceSeconds=most)["spec"]
    settings = WorkerSettings.load(hard_timeout_seconds=timeout, max_grace_seconds=most)

    grace = settings.grace.total_seconds()
    assert spec["terminationGracePeriodSeconds"] == grace + RELEASE_S


def test_names_come_from_the_pod_and_redis_from_the_secret_of_the_connection() -> None:
    found = variables(container(redis="fast"))

    assert found["TIDEWORK_REDIS_URL"] == {
        "secretKeyRef": {"name": "tidework-redis-fast", "key": "url"}
    }
    for name in ("POD_NAME", "TIDEWORK_WORKER_NAME"):
        assert found[name] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert found["NODE_NAME"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert found["TIDEWORK_PROBE_HOST"] == "$(POD_IP)"
    names = [each["name"] for each in container()["env"]]
    assert names.index("POD_IP") < names.index("TIDEWORK_PROBE_HOST")


def test_probes_ask_the_worker_and_a_hung_one_ends_soon() -> None:
    worker = container(hardTimeoutSeconds=3000)

    assert worker["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "probes"}
    assert worker["livenessProbe"]["terminationGracePeriodSeconds"] == 10
    assert worker["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "probes"}
    assert worker["ports"] == [{"name": "probes", "containerPort": 8080, "protocol": "TCP"}]
    assert worker["terminationMessagePolicy"] == "FallbackToLogsOnError"


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ({}, {"args": ["tidework", "worker"]}),
        (
            {"args": ["python", "-m", "tidework.worker"]},
            {"args": ["python", "-m", "tidework.worker"]},
        ),
        ({"command": ["/start"]}, {"command": ["/start"]}),
        ({"command": ["/start"], "args": ["x"]}, {"command": ["/start"], "args": ["x"]}),
        (
            {"imagePullPolicy": "Never"},
            {"args": ["tidework", "worker"], "imagePullPolicy": "Never"},
        ),
    ],
)
def test_command_and_arguments(spec: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
    found = container(**spec)

    names = ("command", "args", "imagePullPolicy")
    assert {name: found[name] for name in names if name in found} == parts


def test_resources_and_variables_of_the_spec_are_taken_over() -> None:
    source = {"secretKeyRef": {"name": "smtp", "key": "password"}}
    found = container(
        resources={"requests": {"cpu": "250m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        env=[
            {"name": "MODE", "value": "fast"},
            {"name": "SMTP_PASSWORD", "valueFrom": source},
            {"name": "TIDEWORK_SLOTS", "value": "99"},
            {"name": "TIDEWORK_LOG_LEVEL", "value": "debug"},
        ],
    )

    assert found["resources"] == {
        "requests": {"cpu": "250m", "memory": "128Mi"},
        "limits": {"memory": "1Gi"},
    }
    assert "resources" not in container()
    named = variables(found)
    assert named["MODE"] == "fast"
    assert named["SMTP_PASSWORD"] == source
    assert named["TIDEWORK_SLOTS"] == "1"
    assert named["TIDEWORK_LOG_LEVEL"] == "debug"


def test_the_template_is_merged_field_by_field() -> None:
    template = {
        "metadata": {"labels": {"team": "post"}, "annotations": {"note": "hi"}},
        "spec": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
            "priorityClassName": "low",
            "imagePullSecrets": [{"name": "registry"}],
            "volumes": [{"name": "models", "configMap": {"name": "models"}}],
            "volumeMounts": [{"name": "models", "mountPath": "/models"}],
            "envFrom": [{"configMapRef": {"name": "common"}}],
            "securityContext": {"fsGroup": 1000},
            "containerSecurityContext": {"readOnlyRootFilesystem": False},
        },
    }
    found = pod(template=template)
    spec = found["spec"]
    (worker,) = spec["containers"]

    assert found["metadata"]["labels"]["team"] == "post"
    assert found["metadata"]["labels"]["tidework.dev/taskqueue"] == "emails"
    assert found["metadata"]["annotations"] == {"note": "hi"}
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["tolerations"] == [{"key": "spot", "operator": "Exists"}]
    assert spec["affinity"] == {"nodeAffinity": {}}
    assert spec["priorityClassName"] == "low"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert [volume["name"] for volume in spec["volumes"]] == [
        *("models", "tidework-tmp", "tidework-redis"),
    ]
    assert [mount["mountPath"] for mount in worker["volumeMounts"]] == [
        *("/models", "/tmp", "/etc/tidework/redis"),
    ]
    assert worker["envFrom"] == [{"configMapRef": {"name": "common"}}]
    assert spec["securityContext"]["fsGroup"] == 1000
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert worker["securityContext"]["readOnlyRootFilesystem"] is False
    assert worker["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    for field in ("volumeMounts", "envFrom", "containerSecurityContext"):
        assert field not in spec


def test_mounts_of_the_spec_win_at_the_places_of_ours() -> None:
    own = [
        {"name": "scratch", "mountPath": "/tmp"},
        {"name": "vault", "mountPath": "/etc/tidework/redis"},
    ]
    volumes = [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "vault", "csi": {}}]
    spec = pod(template={"spec": {"volumes": volumes, "volumeMounts": own}})["spec"]

    assert spec["volumes"] == volumes
    assert spec["containers"][0]["volumeMounts"] == own


def test_the_service_account_has_no_token() -> None:
    assert body(Kind.SERVICE_ACCOUNT)["automountServiceAccountToken"] is False


def test_the_disruption_budget_never_blocks() -> None:
    spec = body(Kind.PDB)["spec"]

    assert spec["maxUnavailable"] == "25%"
    assert spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert spec["selector"] == desired().deployment["spec"]["selector"]


def test_from_outside_only_the_probes_can_be_reached_and_no_credentials_of_the_node() -> None:
    spec = body(Kind.NETWORK_POLICY)["spec"]

    assert spec["podSelector"] == desired().deployment["spec"]["selector"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [{"ports": [{"protocol": "TCP", "port": 8080}]}]
    dns, anywhere = spec["egress"]
    assert dns == {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}
    assert anywhere == {
        "to": [
            {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}},
            {"ipBlock": {"cidr": "::/0", "except": ["fe80::/10"]}},
        ]
    }


def test_whatever_makes_a_rollout_is_another_version_of_the_application() -> None:
    name = "TIDEWORK_APP_VERSION"
    before = variables(container())[name]
    assert before == variables(container(maxReplicas=7))[name], "it makes no rollout"
    for change in ({"image": "shop:2"}, {"slots": 3}, {"env": [{"name": "MODE", "value": "x"}]}):
        assert variables(container(**change))[name] != before, change

    own = container(env=[{"name": name, "value": "2026-01-05"}])
    assert variables(own)[name] == "2026-01-05"
