"""The guard: pages of other sites change nothing, and every answer has its headers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from tidework.access.access import Everybody
from tidework.access.caller import Permission
from tidework.access.guard import HEADERS
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.errors import ConfigurationError
from tidework.settings import DashboardSettings
from tidework.testing.memory.broker import MemoryBroker

HOST = "127.0.0.1:8090"
OWN = "https://tasks.example.com"


class Acts:
    """Routes that no part of the API knows: the guard has to hold for them as well."""

    def __init__(self) -> None:
        self.done = 0

    def act(self) -> None:
        self.done += 1

    def fail(self) -> None:
        raise RuntimeError("a fault")


@pytest.fixture
def acts() -> Acts:
    return Acts()


@pytest.fixture
async def client(acts: Acts) -> AsyncIterator[httpx.AsyncClient]:
    access = Everybody(Permission.ADMIN)
    app = create_api(ApiContext(MemoryBroker(), access, origins=frozenset({OWN})))
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
        app.add_api_route("/act", acts.act, methods=[method], name=f"act_{method}")
    app.add_api_route("/fail", acts.fail, methods=["GET"])
    mounted = FastAPI()
    mounted.add_api_route("/act", acts.act, methods=["POST"])
    app.mount("/mounted", mounted)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as found:
        yield found


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": f"http://{HOST}.evil.example"},
        {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://evil.example", "Authorization": "Bearer secret"},
        {"Origin": "http://evil.example", "X-HTTP-Method-Override": "GET"},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/act"),
        ("PUT", "/act"),
        ("DELETE", "/act"),
        ("PATCH", "/act"),
        ("POST", "/mounted/act"),
    ],
)
async def test_a_page_of_another_site_changes_nothing(
    client: httpx.AsyncClient, acts: Acts, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = await client.request(method, path, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_page")
    assert "TIDEWORK_DASHBOARD_ORIGINS" in answer.json()["detail"]
    assert acts.done == 0


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin", "Origin": f"http://{HOST}"},
        {"Origin": f"https://{HOST}"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": OWN, "Sec-Fetch-Site": "same-origin"},
    ],
)
async def test_a_program_and_an_own_page_may_act(
    client: httpx.AsyncClient, acts: Acts, headers: dict[str, str]
) -> None:
    answer = await client.post("/act", headers=headers)

    assert (answer.status_code, acts.done) == (200, 1)


async def test_a_page_of_another_site_may_ask_for_what_it_cannot_read(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.get("/act", headers={"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("path", "status"),
    [("/api/v1/queues", 200), ("/api/v1/openapi.json", 200), ("/nothing", 404), ("/fail", 500)],
)
async def test_every_answer_has_the_headers(
    client: httpx.AsyncClient, path: str, status: int
) -> None:
    answer = await client.get(path)

    assert answer.status_code == status
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert answer.headers["cache-control"] == "no-store"


async def test_a_refusal_has_them_as_well(client: httpx.AsyncClient) -> None:
    answer = await client.post("/act", headers={"Origin": "null"})

    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


def test_origins_are_a_list_with_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEWORK_DASHBOARD_ORIGINS", f"{OWN} http://localhost:5173")

    assert DashboardSettings.load().dashboard_origins == {OWN, "http://localhost:5173"}


@pytest.mark.parametrize("wrong", ["tasks.example.com", "https://a/", "https://a,https://b/x", "*"])
def test_what_is_not_an_origin_is_refused(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("TIDEWORK_DASHBOARD_ORIGINS", wrong)

    with pytest.raises(ConfigurationError, match="is not an origin"):
        DashboardSettings.load()
