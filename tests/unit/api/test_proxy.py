"""Callers whom a proxy names: from its addresses alone, and with what the grants give."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from tidework.access.access_file import read_access_file
from tidework.access.caller import Caller, Permission
from tidework.access.configured import access_of
from tidework.access.grants import Grant, caller_of
from tidework.access.proxy import TrustedProxy
from tidework.clock import SystemClock
from tidework.errors import ConfigurationError, UnauthenticatedError
from tidework.settings import DashboardSettings

FILE = """
[proxy]
addresses = ["10.1.0.0/16", "fd00::/8"]

[[grants]]
user = "ann@example.com"
permission = "operator"
namespaces = ["shop"]

[[grants]]
group = "ops"
permission = "admin"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "access.toml"
    found.write_text(FILE)
    return found


@pytest.fixture
def proxy(file: Path) -> TrustedProxy:
    found = read_access_file(file)
    assert found.proxy is not None
    return TrustedProxy(found.proxy, found.grants)


def request(address: str, *headers: tuple[str, str]) -> Request:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "client": (address, 1),
        "headers": [(name.lower().encode(), text.encode()) for name, text in headers],
    }
    return Request(scope)


ANN = ("X-Forwarded-User", "ann@example.com")


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "fd00::1"])
async def test_a_proxy_is_believed(proxy: TrustedProxy, address: str) -> None:
    assert await proxy.recognize(request(address, ANN)) == Caller(
        "ann@example.com", Permission.OPERATOR, frozenset({"shop"}), "proxy"
    )


async def test_groups_are_a_list(proxy: TrustedProxy) -> None:
    found = await proxy.recognize(request("10.1.2.3", ANN, ("X-Forwarded-Groups", "dev, ops")))

    assert found is not None
    assert found.may(Permission.ADMIN, "any")


@pytest.mark.parametrize("address", ["10.2.0.1", "127.0.0.1", "fe80::1", "not an address", ""])
async def test_somebody_else_is_not_and_the_log_says_so_once(
    proxy: TrustedProxy, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    forwarded = ("X-Forwarded-For", "10.1.2.3")

    for _ in range(3):
        assert await proxy.recognize(request(address, ANN, forwarded)) is None

    assert [vars(line)["event"] for line in caplog.records] == ["proxy_header_ignored"]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("X-Forwarded-User", " ")],
        [ANN, ("X-Forwarded-User", "root")],
        [("X-Forwarded-Groups", "ops")],
    ],
)
async def test_a_proxy_that_names_nobody_or_two(
    proxy: TrustedProxy, headers: list[tuple[str, str]]
) -> None:
    assert await proxy.recognize(request("10.1.2.3", *headers)) is None


async def test_two_headers_of_groups_give_none(proxy: TrustedProxy) -> None:
    ops = ("X-Forwarded-Groups", "ops")

    found = await proxy.recognize(request("10.1.2.3", ANN, ops, ops))

    assert found is not None
    assert found.permission is Permission.OPERATOR


def grant(permission: str, *namespaces: str, **who: str) -> Grant:
    return Grant.model_validate({**who, "permission": permission, "namespaces": namespaces or None})


@pytest.mark.parametrize(
    ("grants", "permission", "namespaces"),
    [
        ([], Permission.VIEWER, frozenset()),
        ([grant("admin", user="Ann")], Permission.VIEWER, frozenset()),
        ([grant("admin", user="an")], Permission.VIEWER, frozenset()),
        ([grant("admin", group="ann")], Permission.VIEWER, frozenset()),
        ([grant("admin", user="dev")], Permission.VIEWER, frozenset()),
        ([grant("viewer", user="ann")], Permission.VIEWER, None),
        ([grant("viewer", user="ann"), grant("admin", "a", group="dev")], Permission.ADMIN, {"a"}),
        ([grant("admin", "b", user="ann"), grant("admin", "a", group="dev")], 3, {"a", "b"}),
        ([grant("admin", user="ann"), grant("admin", "a", group="dev")], Permission.ADMIN, None),
    ],
)
def test_what_grants_give(
    grants: list[Grant], permission: int, namespaces: set[str] | None
) -> None:
    found = caller_of("ann", {"dev"}, "proxy", grants)

    assert int(found.permission) == permission
    assert found.namespaces == namespaces


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[proxy", "not valid TOML"),
        ("", "nobody identifies callers"),
        ('[proxy]\naddresses = ["10.0.0.0/8"]', "nobody may do anything"),
        (FILE.replace("10.1.0.0/16", "10.1.0.1/16"), r"proxy\.addresses\.0"),
        (FILE.replace('["10.1.0.0/16", "fd00::/8"]', "[]"), r"proxy\.addresses"),
        (FILE.replace("operator", "boss"), r"grants\.0\.permission"),
        (FILE.replace("group =", "grup ="), r"grants\.1"),
        (FILE.replace('group = "ops"', 'group = "ops"\nuser = "x"'), "user or group, one of"),
        (FILE.replace('"shop"', '"No Name"'), "is not the name of a namespace"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(file: Path, text: str, said: str) -> None:
    file.write_text(text)

    with pytest.raises(ConfigurationError, match=said) as refusal:
        access_of(DashboardSettings(dashboard_access_file=file), SystemClock())

    assert str(file) in str(refusal.value)


async def test_tokens_and_a_proxy_side_by_side(file: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    digest = hashlib.sha256(b"secret").hexdigest()
    tokens.write_text(f'[robot]\nsha256 = "{digest}"\npermission = "viewer"')
    settings = DashboardSettings(
        dashboard_host="0.0.0.0", dashboard_tokens_file=tokens, dashboard_access_file=file
    )
    access = access_of(settings, SystemClock())

    robot = await access.identify(request("1.1.1.1", ("Authorization", "Bearer secret")))
    ann = await access.identify(request("10.1.2.3", ANN))

    assert (robot.name, ann.name) == ("robot", "ann@example.com")
    with pytest.raises(UnauthenticatedError, match="proxy"):
        await access.identify(request("1.1.1.1", ANN))
    with pytest.raises(UnauthenticatedError, match="not known"):
        await access.identify(request("1.1.1.1", ("Authorization", "Bearer other")))
