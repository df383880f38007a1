"""docs/http-api.md names every problem, and every address that it names is there."""

from __future__ import annotations

import re

from tests.architecture.source import ROOT
from tidework.access.access import Everybody
from tidework.access.caller import Permission
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.api.problems import INTERNAL, KINDS, OF_STATUS
from tidework.testing.memory.broker import MemoryBroker

PAGE = (ROOT / "docs/http-api.md").read_text("utf-8")


def test_every_problem_is_in_the_table() -> None:
    kinds = [kind for _, kind in KINDS] + [*OF_STATUS.values(), INTERNAL]
    rows = re.findall(r"^\| (\d{3}) \| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE)

    assert rows == [
        (str(status), code, title)
        for status, code, title in sorted({(k.status, k.code, k.title) for k in kinds})
    ]


def test_every_address_of_the_page_is_there() -> None:
    document = create_api(ApiContext(MemoryBroker(), Everybody(Permission.ADMIN))).openapi()
    known = {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, operations in document["paths"].items()
        for method in operations
    }
    named = re.findall(r"`(GET|POST|DELETE) (?:/api/v1)?(/[^`?]*)`", PAGE)

    assert named
    for method, path in named:
        if path != "/openapi.json":
            names = {(m, re.sub(r"\{job_id\}", "{id}", p)) for m, p in known}
            assert (method, path) in names, f"{method} {path}"
