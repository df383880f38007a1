"""Signing in at a provider, over HTTP: the way there and back, the session, and every refusal."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.oidc_provider import CLIENT, SECRET, OidcProvider, new_key
from tidework.access.access_file import read_access_file
from tidework.access.configured import access_of
from tidework.access.oidc import provider as provider_module
from tidework.access.oidc.sign_in import OidcSignIn, is_own_path
from tidework.access.ways import Ways
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.clock import ManualClock, SystemClock
from tidework.errors import ConfigurationError
from tidework.settings import DashboardSettings
from tidework.testing.memory.broker import MemoryBroker

URL = "http://127.0.0.1:8090"
QUEUES = "/api/v1/queues"


@pytest.fixture(scope="module")
def running() -> Iterator[OidcProvider]:
    with OidcProvider() as found:
        yield found


@pytest.fixture
def provider(running: OidcProvider) -> OidcProvider:
    running.claims, running.alg, running.told_issuer = {}, "RS256", running.issuer
    running.keys = [running.keys[0]]
    running.key = running.keys[0]
    return running


@pytest.fixture
def file(provider: OidcProvider, tmp_path: Path) -> Path:
    (tmp_path / "key").write_text("k" * 32)
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    found = tmp_path / "access.toml"
    found.write_text(
        f"""
[oidc]
issuer = "{provider.issuer}"
client_id = "{CLIENT}"
client_secret_file = "{tmp_path}/secret"
session_key_file = "{tmp_path}/key"
url = "{URL}"

[[grants]]
group = "ops"
permission = "operator"
"""
    )
    return found


class Browser:
    """Follows one person's way, a step at a time."""

    def __init__(self, file: Path) -> None:
        self.clock = ManualClock(SystemClock().now())
        found = read_access_file(file)
        assert found.oidc is not None
        sign_in = OidcSignIn(found.oidc, found.grants, self.clock)
        access = Ways([sign_in], "sign in at /auth/login", sign_in)
        app = create_api(ApiContext(MemoryBroker(), access))
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url=URL)

    async def at_provider(self, to: str = "/") -> str:
        """Begin; the address to which the provider sends the person back."""
        begun = await self.client.get("/auth/login", params={"to": to})
        async with httpx.AsyncClient() as outside:
            answer = await outside.get(begun.headers["location"])
        return answer.headers["location"]

    async def sign_in(self, to: str = "/") -> httpx.Response:
        """All of it; the last answer."""
        return await self.client.get(await self.at_provider(to))

    async def may_look(self) -> bool:
        return (await self.client.get(QUEUES)).status_code == 200


@pytest.fixture
async def browser(file: Path) -> AsyncIterator[Browser]:
    found = Browser(file)
    yield found
    await found.client.aclose()


async def test_a_person_signs_in_acts_and_signs_out(browser: Browser) -> None:
    assert not await browser.may_look()

    answer = await browser.sign_in("/jobs?state=dead")

    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?state=dead")
    cookie = answer.headers.get_list("set-cookie")[0]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert await browser.may_look()
    body = {"task": "t"}
    assert (await browser.client.post(f"{QUEUES}/q/jobs", json=body)).status_code == 201
    foreign = {"Origin": "http://evil.example"}
    refused = await browser.client.post(f"{QUEUES}/q/jobs", json=body, headers=foreign)
    assert refused.json()["code"] == "foreign_page"
    assert (await browser.client.post("/auth/logout")).status_code == 204
    assert not await browser.may_look()


async def test_a_person_whom_no_grant_fits_is_known_and_may_nothing(
    browser: Browser, provider: OidcProvider
) -> None:
    provider.claims = {"groups": ["OPS", "op", "ops2"]}

    await browser.sign_in()

    assert (await browser.client.get(QUEUES)).json()["code"] == "forbidden"


OTHER_AUDIENCES = [CLIENT, "other"]


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "http://127.0.0.1:1"},
        {"iss": None},
        {"aud": "other"},
        {"aud": ["other"]},
        {"aud": OTHER_AUDIENCES},
        {"aud": OTHER_AUDIENCES, "azp": "other"},
        {"aud": None},
        {"nonce": "of another sign-in"},
        {"nonce": None},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"iat": 4_000_000_000},
        {"nbf": 4_000_000_000},
        {"sub": None},
        {"email": None},
        {"email_verified": False},
        {"email_verified": None},
        {"email_verified": "true"},
    ],
    ids=str,
)
async def test_an_id_token_that_is_not_for_this_sign_in(
    browser: Browser, provider: OidcProvider, claims: dict[str, Any]
) -> None:
    provider.claims = claims

    answer = await browser.sign_in()

    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert not await browser.may_look()


@pytest.mark.parametrize("seconds", [-30, 30])
async def test_clocks_may_differ_a_little(
    browser: Browser, provider: OidcProvider, seconds: int
) -> None:
    now = int(time.time())
    provider.claims = {"iat": now + seconds, "exp": now + seconds}

    assert (await browser.sign_in()).status_code == 303


async def test_a_token_that_is_not_signed(browser: Browser, provider: OidcProvider) -> None:
    provider.alg = "none"

    assert (await browser.sign_in()).status_code == 401


async def test_a_token_signed_by_the_public_key_as_a_password(
    browser: Browser, provider: OidcProvider
) -> None:
    provider.alg = "HS256"

    assert (await browser.sign_in()).status_code == 401


async def test_a_key_that_is_not_published(browser: Browser, provider: OidcProvider) -> None:
    provider.key = new_key("unknown")

    assert (await browser.sign_in()).status_code == 401


async def test_a_key_of_another_one_under_a_published_name(
    browser: Browser, provider: OidcProvider
) -> None:
    provider.key = new_key("k1")

    assert (await browser.sign_in()).status_code == 401


async def test_keys_rotate(browser: Browser, provider: OidcProvider) -> None:
    await browser.sign_in()
    provider.rotate()
    browser.clock.advance(timedelta(seconds=11))

    assert (await browser.sign_in()).status_code == 303


async def test_made_up_keys_do_not_keep_the_provider_busy(
    browser: Browser, provider: OidcProvider
) -> None:
    await browser.sign_in()
    before = provider.key_reads
    provider.key = new_key("unknown")
    for _ in range(5):
        assert (await browser.sign_in()).status_code == 401

    assert provider.key_reads - before <= 1


async def test_an_answer_is_used_once(browser: Browser, provider: OidcProvider) -> None:
    way = browser.client.cookies
    back = await browser.at_provider()
    kept = dict(way)
    assert (await browser.client.get(back)).status_code == 303
    redeemed = len(provider.redeemed)

    for name, value in kept.items():
        browser.client.cookies.set(name, value, domain="127.0.0.1")
    answer = await browser.client.get(back)

    assert answer.status_code == 401
    assert len(provider.redeemed) == redeemed


async def test_an_answer_to_another_sign_in(browser: Browser, file: Path) -> None:
    other = Browser(file)
    stolen = await other.at_provider()
    await browser.at_provider()

    assert (await browser.client.get(stolen)).status_code == 401
    await other.client.aclose()


async def test_an_answer_without_a_sign_in_or_too_late(browser: Browser) -> None:
    back = await browser.at_provider()
    browser.clock.advance(timedelta(minutes=11))

    assert (await browser.client.get(back)).status_code == 401
    browser.client.cookies.clear()
    assert (await browser.client.get(back)).status_code == 401


@pytest.mark.parametrize("change", ["&error=access_denied", "&iss=http://evil.example"])
async def test_an_answer_that_is_none(browser: Browser, change: str) -> None:
    back = httpx.URL(await browser.at_provider())
    name, _, value = change[1:].partition("=")

    answer = await browser.client.get(back.copy_set_param(name, value))

    assert answer.status_code == 401


async def test_a_provider_of_another_name(browser: Browser, provider: OidcProvider) -> None:
    provider.told_issuer = "http://127.0.0.1:1"

    answer = await browser.client.get("/auth/login")

    assert answer.status_code == 401
    assert "access file" in answer.json()["detail"]


async def test_a_session_ends_by_time_and_a_changed_one_is_none(browser: Browser) -> None:
    await browser.sign_in()
    cookie = browser.client.cookies["tidework"]
    browser.client.cookies.clear()
    changed = cookie[:-5] + ("A" if cookie[-5] != "A" else "B") + cookie[-4:]
    for wrong in (changed, "x", forged(), f"{cookie}.x"):
        answer = await browser.client.get(QUEUES, headers={"Cookie": f"tidework={wrong}"})
        assert answer.status_code == 401, wrong
    there = {"Cookie": f"tidework={cookie}"}
    assert (await browser.client.get(QUEUES, headers=there)).status_code == 200

    browser.clock.advance(timedelta(hours=8, seconds=1))

    assert (await browser.client.get(QUEUES, headers=there)).status_code == 401


def forged() -> str:
    parts = [
        {"alg": "none"},
        {"use": "session", "until": 9e9, "value": {"name": "x", "groups": []}},
    ]
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts)


async def test_a_sign_in_on_the_way_is_not_a_session(browser: Browser) -> None:
    await browser.at_provider()
    cookie = browser.client.cookies["tidework-login"]

    answer = await browser.client.get(QUEUES, headers={"Cookie": f"tidework={cookie}"})

    assert answer.status_code == 401


async def test_no_secret_is_logged(browser: Browser, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "tidework")
    await browser.sign_in()
    await browser.client.get("/auth/callback?code=secret-code&state=secret-state")

    ours = [line for line in caplog.records if line.name.startswith("tidework")]
    text = json.dumps([vars(line) for line in ours], default=repr)
    for secret in (SECRET, browser.client.cookies["tidework"], "secret-code", "secret-state"):
        assert secret not in text


@pytest.mark.parametrize(
    "to", ["//evil.example", "/\\evil.example", "https://evil.example", "", "/\t/e"]
)
async def test_nobody_is_sent_elsewhere(browser: Browser, to: str) -> None:
    assert not is_own_path(to)
    assert (await browser.sign_in(to)).headers["location"] == "/"


async def test_by_tls_the_cookie_is_for_this_host_alone(file: Path) -> None:
    file.write_text(file.read_text().replace(URL, "https://tasks.example.com"))
    browser = Browser(file)

    answer = await browser.client.get("/auth/login")
    cookie = answer.headers["set-cookie"]

    assert cookie.startswith("__Host-tidework-login=")
    assert "; Secure" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie
    await browser.client.aclose()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (URL, "http://tasks.example.com", r"oidc\.url.*https"),
        (URL, f"{URL}/tasks", r"oidc\.url.*path"),
        ('issuer = "http://127.0.0.1', 'issuer = "http://id.example.com', r"oidc\.issuer.*https"),
        (f'client_id = "{CLIENT}"', "", r"oidc\.client_id"),
        ("/key", "/no-key", "session key cannot be read"),
    ],
)
def test_a_wrong_file_is_refused(file: Path, before: str, after: str, said: str) -> None:
    file.write_text(file.read_text().replace(before, after))

    with pytest.raises(ConfigurationError, match=said):
        access_of(DashboardSettings(dashboard_access_file=file), SystemClock())


def test_a_short_key_is_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("short")

    with pytest.raises(ConfigurationError, match="openssl rand"):
        access_of(DashboardSettings(dashboard_access_file=file), SystemClock())


def test_no_algorithm_with_a_shared_key_is_taken() -> None:
    assert not [name for name in provider_module.ALGORITHMS if name.startswith(("HS", "none"))]
