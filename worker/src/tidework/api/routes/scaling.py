"""Why are there so many replicas?"""

from __future__ import annotations

from fastapi import APIRouter, Depends

from tidework.access.caller import Permission
from tidework.access.requires import requires
from tidework.api.context import Context, Queue
from tidework.api.models.scaling import ScalingModel, scaled_model

router = APIRouter(tags=["scaling"])


@router.get("/scaling/{queue}", dependencies=[Depends(requires(Permission.VIEWER))])
async def get_scaling(context: Context, queue: Queue) -> ScalingModel:
    """What the autoscaler decided for a queue, and why: the latest decision and the last steps."""
    found = await context.broker.scaling(queue)
    return ScalingModel(
        queue=queue.name,
        latest=found.latest and scaled_model(found.latest),
        steps=[scaled_model(each) for each in found.steps],
    )
