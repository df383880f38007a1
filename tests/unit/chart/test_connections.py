"""Connections: which Secrets the chart makes, who mounts them, and the Redis that it may bring."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.chart.rendering import NAMESPACE, Object, RefusedError, Rendering, render, template
from tidework.settings import Settings
from tidework_operator.naming import REDIS_SECRET_KEY, redis_secret

OPERATOR = "tidework-operator"
REDIS = "tidework-redis"
FOREIGN = "rediss://user:word@redis.example:6380/1"
WORKERS = {"connections": {"default": {"workerNamespaces": ["shop", "billing"]}}}


def url(rendering: Rendering, connection: str, namespace: str) -> str:
    secret = rendering.one("Secret", redis_secret(connection), namespace)
    found: str = secret["stringData"][REDIS_SECRET_KEY]
    return found


def mounted(rendering: Rendering) -> dict[str, str]:
    """Place -> Secret, in the operator's pod."""
    pod: Object = rendering.one("Deployment", OPERATOR)["spec"]["template"]["spec"]
    places = {m["name"]: m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}
    volumes = [volume for volume in pod["volumes"] if "secret" in volume]
    return {places[volume["name"]]: volume["secret"]["secretName"] for volume in volumes}


def config(rendering: Rendering) -> list[str]:
    text: str = rendering.one("ConfigMap", REDIS)["data"]["redis.conf"]
    return text.split("\n")


def test_operator_workers_and_redis_share_a_password_that_was_made_up() -> None:
    rendering = render(WORKERS)

    secret = rendering.one("Secret", REDIS)["stringData"]
    assert len(secret["password"]) == 32
    assert secret["auth.conf"] == f"requirepass {secret['password']}\n"
    wanted = f"redis://:{secret['password']}@{REDIS}.{NAMESPACE}.svc:6379/0"
    found = {url(rendering, "default", each) for each in (NAMESPACE, "shop", "billing")}
    assert found == {wanted}
    assert Settings(redis_url=wanted).redis_url == wanted


def test_the_password_stays_with_the_volume_when_the_release_goes() -> None:
    rendering = render(WORKERS)

    kept = {
        (each["metadata"]["name"], each["metadata"].get("namespace"))
        for each in rendering.all("Secret")
        if (each["metadata"].get("annotations") or {}).get("helm.sh/resource-policy") == "keep"
    }
    assert kept == {(REDIS, None)}


def test_two_installations_do_not_share_a_password() -> None:
    renderings = []
    for _ in range(2):
        template.cache_clear()
        renderings.append(render())

    passwords = {each.one("Secret", REDIS)["stringData"]["password"] for each in renderings}

    assert len(passwords) == 2


def test_a_given_password_is_taken() -> None:
    rendering = render({"redis": {"password": "0123456789.abc_~-"}})

    assert ":0123456789.abc_~-@" in url(rendering, "default", NAMESPACE)


def test_no_password_is_in_an_argument_a_variable_or_an_annotation() -> None:
    password = "a-password-to-look-for"
    rendering = render({"redis": {"password": password}})

    holders = {each["kind"] for each in rendering.objects if password in str(each)}
    assert holders == {"Secret"}


def test_a_foreign_redis_needs_none_of_ours() -> None:
    rendering = render({"redis": {"enabled": False}, "connections": {"default": {"url": FOREIGN}}})

    assert url(rendering, "default", NAMESPACE) == FOREIGN
    assert rendering.all("StatefulSet") == rendering.all("ConfigMap") == []
    assert [each["metadata"]["name"] for each in rendering.all("Secret")] == [
        redis_secret("default")
    ]


def test_a_secret_that_exists_is_mounted_and_none_is_made() -> None:
    rendering = render(
        {"redis": {"enabled": False}, "connections": {"default": {"existingSecret": "mine"}}}
    )

    assert rendering.all("Secret") == []
    assert mounted(rendering) == {"/etc/tidework/connections/default": "mine"}


def test_every_connection_is_mounted_under_its_name() -> None:
    reports = {"url": FOREIGN, "workerNamespaces": ["shop"]}
    rendering = render({"connections": {"reports": reports}})

    assert url(rendering, "reports", "shop") == FOREIGN
    assert mounted(rendering) == {
        f"/etc/tidework/connections/{name}": redis_secret(name) for name in ("default", "reports")
    }


def test_a_namespace_with_workers_that_is_the_operators_own_gets_one_secret() -> None:
    rendering = render({"connections": {"default": {"workerNamespaces": [NAMESPACE]}}})

    assert url(rendering, "default", NAMESPACE)


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        (
            {"connections": {"default": {"url": FOREIGN}}},
            "set redis.enabled=false, or remove connections.default.url",
        ),
        ({"redis": {"enabled": False}}, "give url or existingSecret, or set redis.enabled=true"),
        ({"connections": {"reports": {}}}, "connections.reports names no Redis"),
        (
            {"connections": {"reports": {"existingSecret": "x", "workerNamespaces": ["shop"]}}},
            "Make the Secret tidework-redis-reports with the key url",
        ),
        (
            {"connections": {"reports": {"existingSecret": "x", "url": FOREIGN}}},
            "goes neither with url nor with workerNamespaces",
        ),
    ],
    ids=["two", "none", "empty", "unknown-content", "both"],
)
def test_what_does_not_fit_is_refused_with_the_remedy(values: dict[str, Any], remedy: str) -> None:
    with pytest.raises(RefusedError) as refused:
        render(values)

    assert remedy in str(refused.value)


def test_redis_keeps_what_it_has() -> None:
    rendering = render({"redis": {"maxmemory": "64mb"}})

    lines = config(rendering)
    assert {"appendonly yes", "appendfsync everysec", "maxmemory-policy noeviction"} <= set(lines)
    assert "maxmemory 64mb" in lines
    stateful = rendering.one("StatefulSet", REDIS)["spec"]
    assert stateful["replicas"] == 1
    assert set(stateful["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}


def test_redis_reads_its_configuration_where_it_is_mounted() -> None:
    rendering = render()
    pod = rendering.one("StatefulSet", REDIS)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    places = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    (volume,) = (each for each in pod["volumes"] if each["name"] == "config")
    configmap, secret = volume["projected"]["sources"]

    assert container["args"][-1] == f"{places['config']}/redis.conf"
    assert configmap["configMap"]["name"] == REDIS
    files = {f"{places['config']}/{item['path']}" for item in secret["secret"]["items"]}
    (included,) = (line.split()[1] for line in config(rendering) if line.startswith("include "))
    assert included in files
    assert f"dir {places['data']}" in config(rendering)
    for probe in ("startupProbe", "readinessProbe"):
        assert any(file in container[probe]["exec"]["command"][-1] for file in files)


def test_a_changed_configuration_restarts_redis_and_a_new_version_does_not() -> None:
    def template(values: dict[str, Any]) -> Object:
        found: Object = render(values).one("StatefulSet", REDIS)["spec"]["template"]
        return found

    usual = template({})
    assert usual != template({"redis": {"maxmemory": "64mb"}})
    assert "version" not in str(usual["metadata"])
    assert "helm.sh/chart" not in str(usual["metadata"])


def test_the_volume_is_as_asked_for() -> None:
    storage = {"size": "100Mi", "className": "fast"}
    redis = render({"redis": {"storage": storage}}).one("StatefulSet", REDIS)
    usual = render().one("StatefulSet", REDIS)

    claim = redis["spec"]["volumeClaimTemplates"][0]["spec"]
    assert claim["resources"]["requests"]["storage"] == "100Mi"
    assert claim["storageClassName"] == "fast"
    assert "storageClassName" not in usual["spec"]["volumeClaimTemplates"][0]["spec"]


def test_the_service_finds_redis() -> None:
    rendering = render()
    service = rendering.one("Service", REDIS)["spec"]
    pod = rendering.one("StatefulSet", REDIS)["spec"]["template"]

    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    assert service["ports"][0]["targetPort"] == pod["spec"]["containers"][0]["ports"][0]["name"]
    selectors = [
        found["spec"]["selector"]["matchLabels"]
        for found in rendering.all("Deployment") + rendering.all("StatefulSet")
    ]
    assert len({str(selector) for selector in selectors}) == 2
