"""Statistics: series of a queue, a task or a namespace, and the tasks of a queue."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from tidework.access.caller import Permission
from tidework.access.requires import requires
from tidework.api.context import NAME_PATTERN, Context, Namespace, Queue, queue_of
from tidework.api.models.moments import Moment
from tidework.api.models.statistics import StatsModel, TaskModel, stats_model, task_model
from tidework.api.paging import Cursor, Limit, Page
from tidework.errors import ConfigurationError
from tidework.model.identity import QueueName
from tidework.model.statistics import (
    ALL_TASKS,
    Step,
    TaskStatistics,
    Totals,
    sum_of_series,
)

router = APIRouter(tags=["statistics"])
to_view = [Depends(requires(Permission.VIEWER))]

TaskName = Annotated[str, Query(max_length=200, description="One task; '(all)' together.")]
StepName = Annotated[
    Literal["minute", "hour", "day"],
    Query(description="How long a point is: of each the last 180 minutes, 72 hours, 400 days."),
]


@router.get("/stats", dependencies=to_view)
async def get_stats(
    context: Context,
    namespace: Namespace,
    queue: Annotated[
        str | None,
        Query(pattern=NAME_PATTERN, description="One queue; left out: all of the namespace."),
    ] = None,
    task: TaskName = ALL_TASKS,
    step: StepName = "minute",
    since: Annotated[Moment | None, Query(description="From the point on that it lies in.")] = None,
    until: Annotated[Moment | None, Query(description="To the point that it lies in.")] = None,
) -> StatsModel:
    """What happened to jobs, as a series; and in the last hour and day."""
    if since is not None and until is not None and since > until:
        raise ConfigurationError("since lies behind until: give the earlier moment as since")
    if queue is None:
        known = await context.broker.queues()
        queues = [name for name in known if name.namespace == namespace]
    else:
        queues = [await queue_of(context, QueueName(namespace, queue))]
    length, broker = Step[step.upper()], context.broker
    several = await asyncio.gather(
        *(broker.series(name, length, task=task, since=since, until=until) for name in queues)
    )
    of_queues = await asyncio.gather(*(broker.statistics(name, task) for name in queues))
    latest = [found for of_queue in of_queues for found in of_queue]
    return stats_model(
        namespace,
        queue,
        sum_of_series(task, length, several),
        Totals.of(found.hour for found in latest),
        Totals.of(found.day for found in latest),
    )


@router.get("/queues/{queue}/tasks", dependencies=to_view)
async def list_tasks(
    context: Context, queue: Queue, limit: Limit = 100, cursor: Cursor = None
) -> Page[TaskModel]:
    """The tasks of a queue by name, the sum of all first: those that workers have announced, and
    those of which something was counted in the last day."""
    announced = await context.broker.tasks(queue)
    counted = {found.task: found for found in await context.broker.statistics(queue)}
    names = sorted({*announced, *counted, ALL_TASKS})
    ahead = [name for name in names if cursor is None or name > cursor]
    nothing = Totals()
    items = [
        task_model(
            counted.get(name, TaskStatistics(name, nothing, nothing)), announced=name in announced
        )
        for name in ahead[:limit]
    ]
    return Page(items=items, next=items[-1].task if len(ahead) > limit else None)
