"""Who may call: the loopback, and the owners of tokens of a file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from tidework.access.access import Loopback
from tidework.access.caller import Caller, Permission
from tidework.access.configured import access_of
from tidework.access.tokens import StaticTokens, read_tokens
from tidework.access.ways import Ways
from tidework.clock import SystemClock
from tidework.errors import ConfigurationError, ForeignPageError, UnauthenticatedError
from tidework.settings import DashboardSettings

IN_SHOP = 'namespaces = ["shop"]'


def request(host: str = "127.0.0.1:8090", **headers: str) -> Request:
    given = {"host": host} | {name.replace("_", "-"): text for name, text in headers.items()}
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "query_string": b"",
        "headers": [(name.encode(), text.encode()) for name, text in given.items()],
    }
    return Request(scope)


def entry(token: str, permission: str, more: str = "") -> str:
    digest = hashlib.sha256(token.encode()).hexdigest()
    return f'sha256 = "{digest}"\npermission = "{permission}"\n{more}'


@pytest.mark.parametrize("host", ["127.0.0.1:8090", "localhost", "[::1]:8090"])
async def test_the_loopback_is_one_person(host: str) -> None:
    found = await Loopback(Permission.ADMIN).identify(request(host=host))

    assert found == Caller("local", Permission.ADMIN, via="loopback")


@pytest.mark.parametrize("host", ["evil.example:8090", "127.0.0.1.evil.example", "10.0.0.1"])
async def test_a_name_that_leads_to_the_loopback_is_not_the_loopback(host: str) -> None:
    with pytest.raises(ForeignPageError, match="localhost"):
        await Loopback(Permission.ADMIN).identify(request(host=host))


async def test_a_token_is_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(
        f"[ann]\n{entry('secret-a', 'operator')}\n[bob]\n{entry('secret-b', 'viewer', IN_SHOP)}\n"
    )
    access = StaticTokens(file)

    ann = await access.identify(request(authorization="Bearer secret-a"))
    bob = await access.identify(request(authorization="bearer secret-b"))

    assert ann.may(Permission.OPERATOR, "any")
    assert not ann.may(Permission.ADMIN, "any")
    assert bob.may(Permission.VIEWER, "shop")
    assert not bob.may(Permission.VIEWER, "other")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic c2VjcmV0", "secret-a"]
)
async def test_another_token_or_none_is_refused(tmp_path: Path, header: str) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(f"[ann]\n{entry('secret-a', 'admin')}")

    with pytest.raises(UnauthenticatedError):
        await StaticTokens(file).identify(request(authorization=header))


async def test_a_token_is_given_and_withdrawn_without_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(f"[ann]\n{entry('first', 'admin')}")
    access = StaticTokens(file)

    file.write_text(f"[bobby]\n{entry('second', 'viewer')}")

    assert (await access.identify(request(authorization="Bearer second"))).name == "bobby"
    with pytest.raises(UnauthenticatedError):
        await access.identify(request(authorization="Bearer first"))


@pytest.mark.parametrize("trouble", ["broken", "gone"])
async def test_a_file_that_becomes_wrong_leaves_the_tokens(tmp_path: Path, trouble: str) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(f"[ann]\n{entry('first', 'admin')}")
    access = StaticTokens(file)

    if trouble == "broken":
        file.write_text("[ann\n")
    else:
        file.unlink()

    assert (await access.identify(request(authorization="Bearer first"))).name == "ann"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[ann", "not valid TOML"),
        ("", "no token in it"),
        ('ann = "secret"', r"write a table: \[ann\]"),
        ('[ann]\nsha256 = "abc"\npermission = "viewer"', "sha256sum"),
        (f"[ann]\n{entry('a', 'boss')}", "viewer, operator, admin"),
        (
            f"[ann]\n{entry('a', 'viewer', IN_SHOP.replace('s =', ' ='))}",
            "did you mean 'namespaces'",
        ),
        (f"[ann]\n{entry('a', 'viewer', 'namespaces = 1')}", "must be a list"),
        (f"[ann]\n{entry('a', 'viewer')}\n[bob]\n{entry('a', 'admin')}", "the same token"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(text)

    with pytest.raises(ConfigurationError, match=said) as refusal:
        read_tokens(file)

    assert str(file) in str(refusal.value)
    assert hashlib.sha256(b"a").hexdigest() not in str(refusal.value)


def test_nobody_else_is_let_in_without_a_way_to_sign_in(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--tokens-file"):
        access_of(DashboardSettings(dashboard_host="0.0.0.0"), SystemClock())

    file = tmp_path / "tokens.toml"
    file.write_text(f"[ann]\n{entry('a', 'viewer')}")
    found = access_of(
        DashboardSettings(dashboard_host="0.0.0.0", dashboard_tokens_file=file), SystemClock()
    )
    assert isinstance(found, Ways)


async def test_without_settings_the_loopback_may_look() -> None:
    found = await access_of(DashboardSettings(), SystemClock()).identify(request())

    assert found.may(Permission.VIEWER, "default")
    assert not found.may(Permission.OPERATOR, "default")
