"""What a TaskQueue says of the pods of its workers."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from tests.support.documents import queue
from tidework.manifests import (
    CLUSTER_FIELDS,
    EnvVar,
    ImagePullPolicy,
    ManifestErrors,
    TaskQueueSpec,
)
from tidework.manifests.part import DnsLabel, Form, TaskName
from tidework.model.identity import is_dns_label, is_task_name


def test_a_short_document_says_nothing_of_pods() -> None:
    spec = queue().spec

    assert (spec.image, spec.image_pull_policy, spec.replicas) == (None, None, None)
    assert (spec.command, spec.args, spec.redis) == ((), (), "default")
    assert (spec.resources.requests, spec.resources.limits) == ({}, {})
    assert spec.template.metadata.labels == {}
    assert spec.template.spec.volumes == ()
    assert spec.template.spec.affinity is None


def test_every_field_is_read() -> None:
    spec = queue(
        imagePullPolicy="Never",
        command=["tini"],
        args=["--", "tidework"],
        redis="main",
        replicas=0,
        resources={"requests": {"cpu": "500m"}, "limits": {"cpu": 2, "memory": "1.5Gi"}},
        template={
            "metadata": {"labels": {"team": "mail"}, "annotations": {"a/b": "any text"}},
            "spec": {
                "nodeSelector": {"disk": "ssd"},
                "affinity": {"nodeAffinity": {"x": [1]}},
                "tolerations": [{"operator": "Exists"}],
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                ],
                "priorityClassName": "batch",
                "runtimeClassName": "gvisor",
                "imagePullSecrets": [{"name": "registry"}],
                "initContainers": [{"name": "warm"}],
                "volumes": [{"name": "cache", "emptyDir": {}}],
                "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
                "envFrom": [{"configMapRef": {"name": "shop"}}],
                "securityContext": {"fsGroup": 2000},
                "containerSecurityContext": {"readOnlyRootFilesystem": False},
            },
        },
    ).spec

    assert spec.image_pull_policy is ImagePullPolicy.NEVER
    assert (spec.command, spec.args) == (("tini",), ("--", "tidework"))
    assert (spec.redis, spec.replicas) == ("main", 0)
    # A whole number is a quantity too, and is text from here on.
    assert spec.resources.limits == {"cpu": "2", "memory": "1.5Gi"}
    assert spec.template.metadata.annotations == {"a/b": "any text"}
    pod = spec.template.spec
    assert pod.affinity == {"nodeAffinity": {"x": [1]}}
    assert pod.image_pull_secrets[0].name == "registry"
    assert pod.volumes == ({"name": "cache", "emptyDir": {}},)
    assert pod.container_security_context == {"readOnlyRootFilesystem": False}
    assert pod.env_from == ({"configMapRef": {"name": "shop"}},)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"tolerations": [{"key": 5}]}, r"tolerations\[0\]\.key: has to be text, not 5"),
        ({"tolerations": [{"tolerationSeconds": "5"}]}, "has to be a whole number, not '5'"),
        ({"securityContext": {"runAsNonRoot": "yes"}}, "has to be true or false, not 'yes'"),
        ({"initContainers": [{"image": "a"}]}, r"initContainers\[0\]\.name: is required"),
        ({"volumeMounts": [{"name": "a", "mountPath": "/a"}]}, "names a volume that is not there"),
        ({"volumes": [{"name": "tidework-tmp"}]}, "are the operator's; use another name"),
        ({"volumes": [{"name": "a"}, {"name": "a"}]}, "volumes: 'a' is given 2 times"),
    ],
)
def test_what_a_cluster_would_refuse_in_the_pod_is_refused_with_its_place(
    spec: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ManifestErrors, match=fault):
        queue(template={"spec": spec})


def test_fields_of_kubernetes_that_are_not_known_here_are_let_in() -> None:
    toleration = {"key": "a", "operator": "Lt", "somethingNew": {"x": [1]}}

    assert queue(template={"spec": {"tolerations": [toleration]}}).spec.template.spec.tolerations


def test_plain_variables_are_told_apart_from_references() -> None:
    source = {"secretKeyRef": {"name": "shop", "key": "token"}}
    document = queue(
        env=[{"name": "LEVEL", "value": "5"}, {"name": "TOKEN", "valueFrom": source}, {"name": "E"}]
    )

    assert document.spec.env[1] == EnvVar(name="TOKEN", valueFrom=source)
    assert document.plain_env == {"LEVEL": "5", "E": ""}


def test_fields_of_the_cluster_are_fields() -> None:
    assert TaskQueueSpec.model_fields.keys() > CLUSTER_FIELDS


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"image": "a b"}, "spec.image: 'a b' is refused: name an image without blanks"),
        ({"image": ""}, "spec.image: has to be 1 or more characters long"),
        ({"imagePullPolicy": "always"}, "has to be 'Always', 'IfNotPresent' or 'Never'"),
        ({"command": "tini"}, 'spec.command: has to be a list, not "tini"'),
        ({"args": [4]}, "spec.args[0]: has to be text, not 4; put it in quotes"),
        ({"redis": "Main"}, "spec.redis: 'Main' is refused: use at most 63 characters"),
        ({"replicas": -1}, "spec.replicas: has to be 0 or more, not -1"),
        ({"resources": {"limits": {"cpu": 0.5}}}, "limits.cpu: has to be text, not 0.5; put it in"),
        ({"resources": {"limits": {"cpu": True}}}, "limits.cpu: has to be text, not true"),
        ({"resources": {"limits": {"cpu": -1}}}, "'-1' is refused: write a quantity of Kubernetes"),
        ({"resources": {"limits": {"cpu": "2 Gi"}}}, "such as 500m, 2, 256Mi or 1.5Gi"),
        ({"resources": {"claims": []}}, "unknown field; known here: requests, limits"),
        (
            {"template": {"metadata": {"labels": {"tidework.dev/taskqueue": "x"}}}},
            "labels: 'tidework.dev/taskqueue' is refused: these are set by the operator",
        ),
        (
            {"template": {"metadata": {"labels": {"app.kubernetes.io/name": "x"}}}},
            "labels: 'app.kubernetes.io/name' is refused: these are set by the operator",
        ),
        (
            {"template": {"metadata": {"labels": {"team": "a b"}}}},
            "labels.team: 'a b' is refused: use letters, digits",
        ),
        (
            {
                "template": {
                    "metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "5"}}
                }
            },
            "annotations: 'controller.kubernetes.io/pod-deletion-cost' is refused",
        ),
        ({"template": {"spec": {"affinity": []}}}, "spec.affinity: has to be a mapping, not []"),
        ({"template": {"spec": {"volumes": {}}}}, "spec.volumes: has to be a list, not {}"),
        (
            {"template": {"spec": {"nodeSelectors": {}}}},
            "unknown field; did you mean nodeSelector?",
        ),
        (
            {"env": [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {}}}]},
            "spec.env[0].valueFrom: value is given too; keep one of them",
        ),
    ],
)
def test_what_is_not_served_is_refused(fields: dict[str, Any], fault: str) -> None:
    with pytest.raises(ManifestErrors) as caught:
        queue(**fields)

    assert len(caught.value.errors) == 1
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "a", "a-b", "-a", "a-", "A", "a.b", "9", "a" * 63, "a" * 64, "a\n", "ä", "a_b", "a:b/c"],
)
def test_names_have_one_form_for_documents_and_for_the_rest_of_the_product(text: str) -> None:
    forms = ((DnsLabel, is_dns_label), (TaskName, is_task_name))
    for annotated, accepts in forms:
        (form,) = (found for found in get_args(annotated) if isinstance(found, Form))
        try:
            form.check(text)
        except ValueError:
            is_accepted = False
        else:
            is_accepted = True
        assert is_accepted == accepts(text)
