"""Lists by pages: how many, where the next one begins; query parameters that nobody reads."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Header, Query, Request
from pydantic import BaseModel

from tidework.errors import ConfigurationError
from tidework.meant import did_you_mean, listed
from tidework.model.identity import QueueName

T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=500, description="Most items of a page.")]
Cursor = Annotated[
    str | None, Query(max_length=300, description="`next` of the page before this one.")
]


IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="The same key and request make one job, however often they are sent.",
    ),
]


def id_of_key(queue: QueueName, key: str | None) -> str | None:
    """The id of the job that a key makes: known to the queue in the step that inserts it.

    So nothing has to be kept beside, and a server that dies before it answers loses nothing.
    """
    if key is None:
        return None
    return f"key-{sha256(f'{queue} {key}'.encode()).hexdigest()[:32]}"


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
