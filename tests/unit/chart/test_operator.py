"""The operator as the chart installs it: what it may do, how it runs, what it is told."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.unit.chart.rendering import NAMESPACE, Object, Rendering, faults, render
from tidework_operator.cluster import READ_BY_PLUGIN, Kind
from tidework_operator.settings import OperatorSettings

NAME = "tidework-operator"
READ_ONLY = {"get", "list", "watch"}
# All that it may do outside of its own namespace. A line more is a decision, not a detail.
RIGHTS = {
    "tidework.dev/taskqueues": {*READ_ONLY, "patch", "update"},
    "tidework.dev/crontasks": {*READ_ONLY, "patch", "update"},
    "tidework.dev/taskqueues/status": {"get", "patch", "update"},
    "tidework.dev/crontasks/status": {"get", "patch", "update"},
    "tidework.dev/taskqueues/scale": {"get", "patch", "update"},
    "apps/deployments": {*READ_ONLY, "create", "patch"},
    "apps/deployments/scale": {"get", "patch"},
    "apps/replicasets": {"get", "list"},
    "/pods": {*READ_ONLY, "patch"},
    "/serviceaccounts": {"get", "list", "create", "patch"},
    "policy/poddisruptionbudgets": {"get", "list", "create", "patch"},
    "networking.k8s.io/networkpolicies": {"get", "list", "create", "patch"},
    "/events": {"get", "create", "patch"},
    "events.k8s.io/events": {"get", "create", "patch"},
}


def rights(roles: Iterable[Object]) -> dict[str, set[str]]:
    """Verbs by group/resource."""
    found: dict[str, set[str]] = {}
    for rule in (rule for role in roles for rule in role["rules"]):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault(f"{group}/{resource}", set()).update(rule["verbs"])
    return found


def pod(rendering: Rendering) -> Object:
    spec: Object = rendering.one("Deployment", NAME)["spec"]["template"]["spec"]
    return spec


def environment(rendering: Rendering) -> dict[str, str]:
    (container,) = pod(rendering)["containers"]
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


def test_its_rights_are_these_and_no_others() -> None:
    assert rights(render().all("ClusterRole")) == RIGHTS


def test_no_role_mentions_secrets_or_a_wildcard() -> None:
    rendering = render({"watch": {"namespaces": ["shop"]}})
    found = rights(rendering.all("ClusterRole") + rendering.all("Role"))

    assert found
    assert [
        name for name, verbs in found.items() if "secrets" in name or "*" in (*name, *verbs)
    ] == []


def test_it_may_read_or_create_every_kind_that_it_touches() -> None:
    rendering = render()
    found = rights(rendering.all("ClusterRole") + rendering.all("Role"))

    kinds = [kind.value for kind in Kind if kind not in READ_BY_PLUGIN]
    names = [f"{kind.api_version.rpartition('/')[0]}/{kind.plural}" for kind in kinds]
    missing = [name for name in names if not found.get(name, set()) & {"get", "create"}]
    assert missing == []


def test_leases_are_its_own_in_its_own_namespace() -> None:
    rendering = render({"watch": {"namespaces": ["shop"]}})
    role = rendering.one("Role", f"{NAME}-lease")

    assert rights([role]) == {"coordination.k8s.io/leases": {"get", "update", "create"}}
    named = [rule for rule in role["rules"] if rule.get("resourceNames") == [NAME]]
    assert [rule["verbs"] for rule in named] == [["get", "update"]]
    assert environment(rendering)["TIDEWORK_LEASE_NAME"] == NAME
    others = [role for role in rendering.all("Role") if role["metadata"]["name"] == NAME]
    assert [name for name in rights(others) if "leases" in name] == []


def test_with_a_list_of_namespaces_it_has_no_right_outside_of_them() -> None:
    rendering = render({"watch": {"namespaces": ["shop", "billing"]}})

    assert rendering.all("ClusterRole") == rendering.all("ClusterRoleBinding") == []
    for namespace in ("shop", "billing"):
        assert rights([rendering.one("Role", NAME, namespace)]) == RIGHTS
        binding = rendering.one("RoleBinding", NAME, namespace)
        assert binding["roleRef"]["name"] == NAME
        assert binding["subjects"][0]["namespace"] == NAMESPACE
    assert environment(rendering)["TIDEWORK_NAMESPACES"] == "shop,billing"


def test_every_variable_is_one_that_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    given = environment(render({"watch": {"namespaces": ["shop"]}, "log": {"level": "debug"}}))
    fields = OperatorSettings.model_fields

    unknown = [name for name in given if name.removeprefix("TIDEWORK_").lower() not in fields]
    assert unknown == []
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = OperatorSettings.load()
    assert settings.namespaces == ("shop",)
    assert settings.log_level == "debug"
    assert settings.connections.as_posix() == "/etc/tidework/connections"


def test_the_probes_are_on_the_port_that_it_listens_on() -> None:
    rendering = render()
    (container,) = pod(rendering)["containers"]

    (port,) = container["ports"]
    assert str(port["containerPort"]) == environment(rendering)["TIDEWORK_PROBE_PORT"]
    paths = {
        name: container[name]["httpGet"]["path"]
        for name in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    assert paths == {
        "startupProbe": "/livez",
        "livenessProbe": "/livez",
        "readinessProbe": "/readyz",
    }
    assert {container[name]["httpGet"]["port"] for name in paths} == {port["name"]}


def test_two_replicas_prefer_different_nodes_and_one_of_them_stays() -> None:
    rendering = render()
    deployment = rendering.one("Deployment", NAME)["spec"]

    assert deployment["replicas"] == 2
    affinity = pod(rendering)["affinity"]["podAntiAffinity"]
    (preferred,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    labels = deployment["template"]["metadata"]["labels"]
    for selector in (
        preferred["podAffinityTerm"]["labelSelector"]["matchLabels"],
        rendering.one("PodDisruptionBudget", NAME)["spec"]["selector"]["matchLabels"],
        deployment["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    assert rendering.one("PodDisruptionBudget", NAME)["spec"]["maxUnavailable"] == 1


def test_every_pod_fits_a_restricted_namespace() -> None:
    pods = render().pods()

    assert len(pods) == 2
    assert [list(faults(found)) for found in pods] == [[], []]


def test_only_the_operator_holds_a_token_of_the_api_server() -> None:
    rendering = render()

    tokens = [found["automountServiceAccountToken"] for found in rendering.pods()]
    assert sorted(tokens) == [False, True]
    assert pod(rendering)["automountServiceAccountToken"] is True
    assert rendering.one("ServiceAccount", NAME)["automountServiceAccountToken"] is False


def test_what_it_writes_to_is_mounted() -> None:
    rendering = render()
    (container,) = pod(rendering)["containers"]

    volumes = {volume["name"]: volume for volume in pod(rendering)["volumes"]}
    writable = {
        mount["mountPath"]
        for mount in container["volumeMounts"]
        if "emptyDir" in volumes[mount["name"]]
    }
    assert writable == {"/tmp", environment(rendering)["TIDEWORK_STATE_DIR"]}


def test_the_image_can_be_named() -> None:
    image = {"repository": "registry.example:5000/tidework/operator", "tag": "e2e-0a1b"}

    (container,) = pod(render({"image": image}))["containers"]
    assert container["image"] == "registry.example:5000/tidework/operator:e2e-0a1b"
