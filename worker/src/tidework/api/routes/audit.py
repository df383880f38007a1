"""The record of acts: what people did by this API, the newest first."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from tidework.access.caller import Permission
from tidework.access.requires import requires
from tidework.api.context import Context, Namespace
from tidework.api.models.acts import ActModel, act_model
from tidework.api.paging import Limit, Page

router = APIRouter(tags=["audit"])


@router.get("/audit", dependencies=[Depends(requires(Permission.OPERATOR, to_act=False))])
async def list_acts(
    context: Context,
    namespace: Namespace,
    limit: Limit = 100,
    cursor: Annotated[
        int | None, Query(ge=1, le=2**53, description="`next` of the page before this one.")
    ] = None,
) -> Page[ActModel]:
    """What was done in the namespace; the newest 10,000 acts are kept."""
    page = await context.broker.acts(namespace, before=cursor, limit=limit)
    return Page(
        items=[act_model(number, act) for number, act in page.acts],
        next=None if page.before is None else str(page.before),
    )
