"""Jobs: look for them, look at one, put one in, act on one.

An act that comes too late is answered by what is true now: a problem of status 409.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import AwareDatetime

from tidework.access.caller import Permission
from tidework.access.requires import requires
from tidework.api.context import ApiContext, Context, Queue, QueueInPath
from tidework.api.models.jobs import JobDetail, JobModel, job_detail, job_model
from tidework.api.models.orders import (
    Answered,
    EnqueuedModel,
    EnqueueOrder,
    RetryOrder,
    job_of_order,
    retried,
)
from tidework.api.models.redacted import redacted_job
from tidework.api.paging import Cursor, IdempotencyKey, Limit, Page, id_of_key
from tidework.broker.answers import CancelAnswer, DeleteAnswer, PromoteAnswer, ReplayAnswer
from tidework.broker.search import JobSearch, find_jobs
from tidework.errors import (
    EnvelopeError,
    IdempotencyError,
    JobNotFoundError,
    JobStateError,
    ResultExpiredError,
)
from tidework.model.backlog import JobRecord
from tidework.model.identity import QueueName
from tidework.model.job import FINISHED_STATES, Job, JobState, decode_stored_job

router = APIRouter(tags=["jobs"])
to_view = [Depends(requires(Permission.VIEWER))]
to_act = [Depends(requires(Permission.OPERATOR))]

JobId = Annotated[
    str,
    Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$", description="Id of the job."),
]
_TASK = Query(max_length=200, description="Name of the task.")
_TEXT = Query(
    max_length=200, description="In the id, task, params or error, as it is written there."
)
_SINCE = Query(
    description="From this moment on: of the end, the due time of waiting jobs, the last start."
)


class FoundJobs(Page[JobModel]):
    """A page of jobs; fewer than ``limit``, though there are more, where most did not fit."""

    looked_at: int


def search_of(
    state: Annotated[
        list[JobState] | None, Query(description="Any number of states; none = all.")
    ] = None,
    task: Annotated[str, _TASK] = "",
    error: Annotated[
        str, Query(max_length=200, description="Fingerprint of the error of a dead letter.")
    ] = "",
    text: Annotated[str, _TEXT] = "",
    since: Annotated[AwareDatetime | None, _SINCE] = None,
    until: Annotated[AwareDatetime | None, Query(description="Up to this moment.")] = None,
) -> JobSearch:
    """Which jobs a request means."""
    return JobSearch(tuple(state or ()), task, error, text, since, until)


@router.get("/queues/{queue}/jobs", dependencies=to_view)
async def list_jobs(
    context: Context,
    queue: Queue,
    search: Annotated[JobSearch, Depends(search_of)],
    limit: Limit = 100,
    cursor: Cursor = None,
) -> FoundJobs:
    """Jobs that fit: running, ready, scheduled, dead, succeeded, cancelled, in this order.

    Waiting jobs come in the order in which they run, ended ones newest first. While jobs come and
    go between two pages, one may be seen twice. A page looks at 1,000 jobs at most: `next` goes on
    from there.
    """
    found = await find_jobs(context.broker, queue, search, cursor=cursor, limit=limit)
    items = [redacted_job(job_model(queue, job), context.redaction) for job in found.jobs]
    return FoundJobs(items=items, next=found.cursor, looked_at=found.looked_at)


@router.get("/jobs/{queue}/{job_id}", dependencies=to_view)
async def get_job(context: Context, queue: Queue, job_id: JobId) -> JobDetail:
    """Everything known of one job: its envelope, deliveries, progress, result or error."""
    found = job_detail(queue, await _record(context, queue, job_id))
    return redacted_job(found, context.redaction)


@router.post("/queues/{queue}/jobs", dependencies=to_act, status_code=201)
async def enqueue(
    context: Context,
    queue: QueueInPath,
    order: EnqueueOrder,
    response: Response,
    key: IdempotencyKey = None,
) -> EnqueuedModel:
    """Put a job into the queue, which need not exist before.

    Status 201 if it was inserted; 200 if its id is known already or another job holds its unique
    key: then `id` is of the job that stands for it. With the header `Idempotency-Key` the same
    request inserts once.
    """
    job = job_of_order(order, id_of_key(queue, key), context.clock.now())
    return await _insert(context, queue, job, response, is_keyed=key is not None)


@router.post("/jobs/{queue}/{job_id}/cancel", dependencies=to_act)
async def cancel_job(context: Context, queue: Queue, job_id: JobId) -> Answered:
    """Cancel a job: at once if it waits (`cancelled`), by its worker if it runs (`requested`)."""
    answer = await context.broker.cancel(queue, job_id)
    if answer is CancelAnswer.UNKNOWN:
        raise JobNotFoundError(job_id, str(queue))
    if answer is CancelAnswer.FINISHED:
        raise JobStateError(job_id, "it has ended already")
    return Answered(id=job_id, answer=answer.value)


@router.post("/jobs/{queue}/{job_id}/promote", dependencies=to_act)
async def promote_job(context: Context, queue: Queue, job_id: JobId) -> Answered:
    """Make a scheduled job ready at once, whether it was delayed or waits for its next attempt."""
    answer = await context.broker.promote(queue, job_id)
    if answer is PromoteAnswer.UNKNOWN:
        raise JobNotFoundError(job_id, str(queue))
    if answer is not PromoteAnswer.PROMOTED:
        raise JobStateError(job_id, _NOT_PROMOTED[answer])
    return Answered(id=job_id, answer=answer.value)


_NOT_PROMOTED = {
    PromoteAnswer.READY: "it is due already, and runs as soon as a worker takes it",
    PromoteAnswer.RUNNING: "it runs already",
    PromoteAnswer.ENDED: "it has ended; retry it instead",
    PromoteAnswer.HELD: "it waits for the end of the job that it replaces; cancel that one instead",
}


@router.post("/jobs/{queue}/{job_id}/replay", dependencies=to_act)
async def replay_job(context: Context, queue: Queue, job_id: JobId) -> Answered:
    """Make a dead letter ready again, with all its attempts and under its own id."""
    (answer,) = await context.broker.replay(queue, [job_id])
    if answer is ReplayAnswer.UNKNOWN:
        raise JobNotFoundError(job_id, str(queue))
    if answer is not ReplayAnswer.REPLAYED:
        raise JobStateError(job_id, _NOT_REPLAYED[answer])
    return Answered(id=job_id, answer=answer.value)


_NOT_REPLAYED = {
    ReplayAnswer.NOT_DEAD: "it is not a dead letter; retry it as a new job instead",
    ReplayAnswer.UNIQUE: "another job holds its unique key by now; wait for the end of that one",
    ReplayAnswer.CUT: "the document was too large, and only its beginning was kept; send it again",
}


@router.post("/jobs/{queue}/{job_id}/retry", dependencies=to_act, status_code=201)
async def retry_job(
    context: Context,
    queue: Queue,
    job_id: JobId,
    order: RetryOrder,
    response: Response,
    key: IdempotencyKey = None,
) -> EnqueuedModel:
    """Put a copy of an ended job into its queue: a new job, with the same params or with others.

    The old job stays as it is; the new one names it in `retry_of`. Answers as an enqueue.
    """
    record = await _record(context, queue, job_id)
    if record.state not in FINISHED_STATES:
        raise JobStateError(job_id, f"it is {record.state.value} and has not ended")
    if not record.task:
        raise JobStateError(job_id, "it is a document that is not valid; send a mended one")
    before = decode_stored_job(record.body)
    job = retried(before, order, id_of_key(queue, key), context.clock.now())
    return await _insert(context, queue, job, response, is_keyed=key is not None)


@router.delete("/jobs/{queue}/{job_id}", dependencies=to_act)
async def delete_job(context: Context, queue: Queue, job_id: JobId) -> Answered:
    """Delete a job: one that waits is cancelled first; one that runs is refused.

    Its id stays known for ten minutes after its end, so that it is not enqueued again by mistake.
    """
    answer = await context.broker.delete(queue, job_id)
    if answer is DeleteAnswer.UNKNOWN:
        raise JobNotFoundError(job_id, str(queue))
    if answer is DeleteAnswer.RUNNING:
        raise JobStateError(job_id, "it runs; cancel it, and delete it when it has ended")
    return Answered(id=job_id, answer=answer.value)


async def _record(context: ApiContext, queue: QueueName, job_id: str) -> JobRecord:
    found = await context.broker.get_job(queue, job_id)
    if found is not None:
        return found
    ended_at = await context.broker.forgotten_at(queue, job_id)
    if ended_at is not None:
        raise ResultExpiredError(job_id, str(queue), ended_at)
    raise JobNotFoundError(job_id, str(queue))


async def _insert(
    context: ApiContext, queue: QueueName, job: Job, response: Response, *, is_keyed: bool
) -> EnqueuedModel:
    (found,) = await context.broker.enqueue(queue, [job])
    if not found.inserted:
        response.status_code = 200
        if is_keyed and found.id == job.id:
            await _check_same(context, queue, job)
    return EnqueuedModel(id=found.id, inserted=found.inserted)


async def _check_same(context: ApiContext, queue: QueueName, job: Job) -> None:
    """Raises IdempotencyError if the job of this key was asked for otherwise."""
    record = await context.broker.get_job(queue, job.id)
    if record is None or not record.task:
        return
    try:
        before = decode_stored_job(record.body)
    except EnvelopeError:
        return
    if _asked_for(before) != _asked_for(job):
        raise IdempotencyError(job.id)


def _asked_for(job: Job) -> tuple[object, ...]:
    """What a request says of a job, without its time; a delay is not in an envelope."""
    extra = dict(job.extra)
    return (
        job.task,
        dict(job.params),
        job.priority,
        job.available_at,
        job.max_attempts,
        job.timeout,
        job.unique,
        extra.get("retry_of"),
    )
