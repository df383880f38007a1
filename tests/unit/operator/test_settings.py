"""Settings of the operator: what is wrong is named, what is left out has a sensible value."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidework.errors import ConfigurationError
from tidework_operator import settings as module
from tidework_operator.settings import OperatorSettings


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("TIDEWORK_", "POD_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(module, "IN_CLUSTER_NAMESPACE", tmp_path / "namespace")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("REDIS_URL", "http://redis"),
        ("NAMESPACES", "shop,Not A Name"),
        ("LEASE_NAME", "no/slash"),
        ("LEASE_NAMESPACE", "UPPER"),
        ("PROBE_PORT", "70000"),
        ("LOG_LEVEL", "loud"),
        ("IDENTITY", ""),
    ],
)
def test_a_wrong_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(f"TIDEWORK_{variable}", value)

    with pytest.raises(ConfigurationError, match=f"TIDEWORK_{variable}"):
        OperatorSettings.load()


def test_nothing_has_to_be_given() -> None:
    settings = OperatorSettings.load()

    assert settings.redis_url == ""
    assert settings.namespaces == ()
    assert settings.connections == Path("/etc/tidework/connections")
    assert (settings.lease_namespace, settings.lease_name) == ("default", "tidework-operator")
    assert settings.state_dir is None
    assert settings.probe_port == 8080


def test_the_pod_says_who_and_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "operator-7f9c-abcde")
    monkeypatch.setenv("POD_NAMESPACE", "tidework")

    settings = OperatorSettings.load()

    assert settings.identity == "operator-7f9c-abcde"
    assert settings.lease_namespace == "tidework"


def test_the_service_account_says_where_it_is() -> None:
    module.IN_CLUSTER_NAMESPACE.write_text("tidework\n")

    assert OperatorSettings.load().lease_namespace == "tidework"


def test_without_a_pod_two_processes_of_a_machine_have_two_names() -> None:
    assert OperatorSettings.load().identity != OperatorSettings.load().identity


@pytest.mark.parametrize(
    ("text", "namespaces"),
    [("", ()), ("shop", ("shop",)), ("shop, lab ,shop,", ("shop", "lab"))],
)
def test_namespaces_are_a_list_of_names(
    monkeypatch: pytest.MonkeyPatch, text: str, namespaces: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TIDEWORK_NAMESPACES", text)

    assert OperatorSettings.load().namespaces == namespaces


def test_a_redis_url_is_taken_for_runs_outside_of_a_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TIDEWORK_REDIS_URL", "redis://127.0.0.1:6380/1")

    assert OperatorSettings.load().redis_url == "redis://127.0.0.1:6380/1"
