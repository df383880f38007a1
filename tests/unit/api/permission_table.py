"""The table of docs/access.md: what each route asks for.

After a new route ``python -m tests.unit.api.permission_table --write`` renews it; look at the diff.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from fastapi.routing import APIRoute

from tidework.access.requires import requires
from tidework.api.application import ROUTERS

PAGE = Path(__file__).parents[3] / "docs" / "access.md"
HEAD = "| method | path below `/api/v1` | permission |\n| --- | --- | --- |\n"
_TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*")


def permission_of(route: APIRoute) -> str:
    """The name of the permission that a route asks for; '' if it asks for none."""
    for depends in route.dependencies:
        check = depends.dependency
        if getattr(check, "__module__", "") == requires.__module__ and inspect.isfunction(check):
            return str(inspect.getclosurevars(check).nonlocals["permission"].name.lower())
    return ""


def written() -> str:
    """The table as it should be."""
    routes = [each for router in ROUTERS for each in router.routes if isinstance(each, APIRoute)]
    rows = sorted(
        (route.path, method, permission_of(route))
        for route in routes
        for method in route.methods or ()
    )
    lines = [f"| {method} | `{path}` | `{permission}` |\n" for path, method, permission in rows]
    return HEAD + "".join(lines)


def found() -> str:
    """The table as it is."""
    match = _TABLE.search(PAGE.read_text("utf-8"))
    return "" if match is None else match[0]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.unit.api.permission_table --write")
    table = written()
    PAGE.write_text(_TABLE.sub(lambda _: table, PAGE.read_text("utf-8")))
