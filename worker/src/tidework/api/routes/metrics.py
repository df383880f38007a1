"""Metrics of all queues, for Prometheus: one exporter, with or without a cluster."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from tidework.access.caller import Permission
from tidework.access.requires import requires
from tidework.api.context import NAME_PATTERN, CallerOfRequest, Context
from tidework.api.models.queues import QueueModel, read_queue
from tidework.metrics import CONTENT_TYPE, QueueNumbers, queues_page
from tidework.model.job import JobState

router = APIRouter(tags=["metrics"])


@router.get(
    "/metrics",
    dependencies=[Depends(requires(Permission.VIEWER))],
    response_class=Response,
    responses={200: {"content": {CONTENT_TYPE: {"schema": {"type": "string"}}}}},
)
async def get_metrics(
    context: Context,
    caller: CallerOfRequest,
    namespace: Annotated[
        str | None,
        Query(pattern=NAME_PATTERN, description="One namespace; left out: all that you may see."),
    ] = None,
) -> Response:
    """Queues in the text format of Prometheus, as they are now."""
    known = [
        queue
        for queue in await context.broker.queues()
        if namespace in (None, queue.namespace) and caller.may(Permission.VIEWER, queue.namespace)
    ]
    found = await asyncio.gather(*(read_queue(context.broker, queue) for queue in known))
    return Response(queues_page([_numbers(each) for each in found]), media_type=CONTENT_TYPE)


def _numbers(found: QueueModel) -> QueueNumbers:
    scaling = found.scaling
    return QueueNumbers(
        namespace=found.namespace,
        queue=found.name,
        jobs={state.value: getattr(found, state.value) for state in JobState},
        inbox=found.inbox,
        oldest_wait=found.oldest_wait_seconds,
        is_paused=found.pause is not None,
        workers={"living": found.workers, "stale": found.stale_workers},
        replicas={} if scaling is None else {"asked": scaling.replicas, "wanted": scaling.wanted},
        counters=found.counters,
    )
