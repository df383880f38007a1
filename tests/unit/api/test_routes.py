"""Every route of the API says what it needs, and the OpenAPI document describes it."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.routing import APIRoute

from tests.unit.api.permission_table import found, written
from tidework.access.access import Everybody
from tidework.access.caller import Permission
from tidework.access.requires import requires
from tidework.api.application import AT_ROOT, ROUTERS, create_api
from tidework.api.context import ApiContext
from tidework.testing.memory.broker import MemoryBroker

ROUTES = [
    route
    for router in (*ROUTERS, *AT_ROOT)
    for route in router.routes
    if isinstance(route, APIRoute)
]
CHECK = requires(Permission.VIEWER).__qualname__


def document() -> dict[str, Any]:
    return create_api(ApiContext(MemoryBroker(), Everybody(Permission.ADMIN))).openapi()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_route_asks_for_a_permission(route: APIRoute) -> None:
    checks = [depends.dependency for depends in route.dependencies]

    assert [getattr(check, "__qualname__", "") for check in checks].count(CHECK) == 1


def test_the_page_says_what_each_route_asks_for() -> None:
    assert found() == written(), "python -m tests.unit.api.permission_table --write renews it"


def test_there_are_routes() -> None:
    assert len(ROUTES) > 1


def test_no_two_routes_have_one_name() -> None:
    names = [route.name for route in ROUTES]

    assert sorted(names) == sorted(set(names))


def test_every_operation_is_described_and_belongs_to_a_resource() -> None:
    for path, operations in document()["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), f"{method} {path} has no description"
            assert len(operation["tags"]) == 1, f"{method} {path}"
