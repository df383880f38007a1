"""Workers: who they are, what they run, and whether they may claim."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field

from tidework.access.caller import Permission
from tidework.access.requires import requires
from tidework.api.context import NAME_PATTERN, ApiContext, Context, Namespace
from tidework.api.models.workers import WorkerModel, worker_model
from tidework.api.paging import Cursor, Limit, Page
from tidework.roster import Roster

router = APIRouter(tags=["workers"])
to_view = [Depends(requires(Permission.VIEWER))]
to_act = [Depends(requires(Permission.OPERATOR))]

QueueChosen = Annotated[
    str | None, Query(pattern=NAME_PATTERN, description="Only workers of this queue.")
]
WorkerName = Annotated[
    str,
    Path(
        pattern=r"^[^/]{1,200}$",
        description="Incarnation of the worker, or its name if one of that name lives.",
    ),
]


@router.get("/workers", dependencies=to_view)
async def list_workers(
    context: Context,
    namespace: Namespace,
    queue: QueueChosen = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[WorkerModel]:
    """Workers of the namespace that have not left, by incarnation; silent ones for some minutes."""
    entries = await (await _roster(context, namespace, queue)).entries()
    ahead = [entry for entry in entries if cursor is None or entry.incarnation > cursor]
    page = ahead[:limit]
    further = page[-1].incarnation if len(ahead) > limit else None
    return Page(items=[worker_model(entry) for entry in page], next=further)


@router.get("/workers/{name}", dependencies=to_view)
async def get_worker(context: Context, namespace: Namespace, name: WorkerName) -> WorkerModel:
    """One worker."""
    roster = await _roster(context, namespace, None)
    return worker_model(await roster.find(name))


class Drained(BaseModel):
    """leases: jobs that it still runs; was_drained: it was so already"""

    incarnation: str
    leases: int
    was_drained: bool


@router.post("/workers/{name}/drain", dependencies=to_act)
async def drain_worker(context: Context, namespace: Namespace, name: WorkerName) -> Drained:
    """Have a worker claim nothing more; what it runs it finishes, and then it waits."""
    roster = await _roster(context, namespace, None)
    entry = await roster.find(name)
    answer = await roster.cordon(entry)
    return Drained(incarnation=entry.incarnation, leases=answer.leases, was_drained=answer.before)


class Undrained(BaseModel):
    """What became of it."""

    incarnation: str
    was_drained: bool = Field(description="A person had it drained, and that is undone.")
    still_cordoned: bool = Field(description="The autoscaler keeps it from claiming, for now.")


@router.post("/workers/{name}/undrain", dependencies=to_act)
async def undrain_worker(context: Context, namespace: Namespace, name: WorkerName) -> Undrained:
    """Let a worker claim again that a person had drained."""
    roster = await _roster(context, namespace, None)
    entry = await roster.find(name)
    answer = await roster.uncordon(entry)
    return Undrained(
        incarnation=entry.incarnation, was_drained=answer.undone, still_cordoned=answer.still
    )


async def _roster(context: ApiContext, namespace: str, queue: str | None) -> Roster:
    known = await context.broker.queues()
    chosen = [each for each in known if each.namespace == namespace and queue in (None, each.name)]
    return Roster(context.broker, chosen)
