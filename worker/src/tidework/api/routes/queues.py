"""Queues: how many jobs are in which state, and whether they are paused."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field

from tidework.access.caller import Permission
from tidework.access.requires import requires
from tidework.api.context import Context, Namespace, Queue
from tidework.api.models.queues import QueueModel, read_queue
from tidework.api.paging import Cursor, Limit, Page

router = APIRouter(tags=["queues"])
to_view = [Depends(requires(Permission.VIEWER))]
to_act = [Depends(requires(Permission.OPERATOR))]


@router.get("/queues", dependencies=to_view)
async def list_queues(
    context: Context, namespace: Namespace, limit: Limit = 100, cursor: Cursor = None
) -> Page[QueueModel]:
    """The queues of the namespace, by name."""
    known = [queue for queue in await context.broker.queues() if queue.namespace == namespace]
    ahead = [queue for queue in known if cursor is None or queue.name > cursor]
    page = ahead[:limit]
    items = [await read_queue(context.broker, queue) for queue in page]
    return Page(items=items, next=page[-1].name if len(ahead) > limit else None)


@router.get("/queues/{queue}", dependencies=to_view)
async def get_queue(context: Context, queue: Queue) -> QueueModel:
    """One queue."""
    return await read_queue(context.broker, queue)


class PauseOrder(BaseModel):
    """reason: shown wherever the queue is"""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(default="", max_length=500)


@router.post("/queues/{queue}/pause", dependencies=to_act)
async def pause_queue(context: Context, queue: Queue, order: PauseOrder) -> QueueModel:
    """Stop claims from the queue until it is resumed: what runs goes on, and jobs can be put in.

    A queue that is paused already keeps its reason.
    """
    await context.broker.pause(queue, order.reason)
    return await read_queue(context.broker, queue)


@router.post("/queues/{queue}/resume", dependencies=to_act)
async def resume_queue(context: Context, queue: Queue) -> QueueModel:
    """End a pause; nothing changes for a queue that is not paused."""
    await context.broker.resume(queue)
    return await read_queue(context.broker, queue)
