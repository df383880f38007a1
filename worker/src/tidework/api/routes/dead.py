"""Dead letters by what they have in common: the fingerprint of their error."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from tidework.access.caller import Permission
from tidework.access.redaction import Redaction, Redactor
from tidework.access.requires import requires
from tidework.api.context import NAME_PATTERN, Context, Namespace
from tidework.api.models.jobs import SHORT
from tidework.api.models.moments import Moment
from tidework.model.backlog import ErrorGroup
from tidework.model.identity import QueueName

router = APIRouter(tags=["dead letters"])


class ErrorGroupModel(BaseModel):
    """Dead letters of one fingerprint in one queue."""

    queue: str
    fingerprint: str
    count: int
    first_at: Moment = Field(description="When the oldest of them died.")
    last_at: Moment
    example: str = Field(description="The id of the newest.")
    type: str | None
    message: str | None


class ErrorGroups(BaseModel):
    """The most frequent first."""

    items: list[ErrorGroupModel]


@router.get("/dead/errors", dependencies=[Depends(requires(Permission.VIEWER))])
async def list_dead_errors(
    context: Context,
    namespace: Namespace,
    queue: Annotated[
        str | None, Query(pattern=NAME_PATTERN, description="Of this queue alone.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Most groups of a queue.")] = 20,
) -> ErrorGroups:
    """Dead letters grouped by the fingerprint of their error, of all queues of the namespace."""
    known = [each for each in await context.broker.queues() if each.namespace == namespace]
    chosen = [each for each in known if queue in (None, each.name)]
    groups = [
        _group(each, found, context.redaction)
        for each in chosen
        for found in await context.broker.list_errors(each, limit=limit)
    ]
    groups.sort(key=lambda group: (-group.count, group.queue, group.fingerprint))
    return ErrorGroups(items=groups)


def _group(queue: QueueName, found: ErrorGroup, redaction: Redaction) -> ErrorGroupModel:
    error = found.error
    return ErrorGroupModel(
        queue=queue.name,
        fingerprint=found.fingerprint,
        count=found.count,
        first_at=found.first_at,
        last_at=found.last_at,
        example=found.example,
        type=error and error.type,
        message=error and Redactor(redaction).text("message", error.message)[:SHORT],
    )
