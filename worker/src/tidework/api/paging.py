"""Lists by pages: how many, where the next one begins; query parameters that nobody reads."""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query, Request
from pydantic import BaseModel

from tidework.errors import ConfigurationError
from tidework.meant import did_you_mean, listed

T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=500, description="Most items of a page.")]
Cursor = Annotated[
    str | None, Query(max_length=300, description="`next` of the page before this one.")
]


class Page(BaseModel, Generic[T]):
    """A page of a list; ``next`` is the cursor of the following one, null at the end."""

    items: list[T]
    next: str | None = None


async def refuse_unknown_parameters(request: Request) -> None:
    """Raises ConfigurationError for a query parameter that the OpenAPI document does not have."""
    if not request.query_params:
        return
    known = _query_names(request.app.openapi(), request.scope["route"].name)
    for name in request.query_params:
        if name not in known:
            has = f"this address has: {listed(known)}" if known else "there are none here"
            raise ConfigurationError(
                f"query parameter {name!r} is not known{did_you_mean(name, known) or ';'} {has}"
            )


def _query_names(document: dict[str, Any], operation_id: str) -> list[str]:
    operations = [each for path in document["paths"].values() for each in path.values()]
    operation = next(each for each in operations if each["operationId"] == operation_id)
    parameters = operation.get("parameters", [])
    return sorted(each["name"] for each in parameters if each["in"] == "query")
