"""CronTasks: how they stand, their runs, and what people do with them.

No act edits a document: in a cluster the resource is the truth.
"""

from __future__ import annotations

import json
import secrets

from fastapi import APIRouter, Depends, Response

from tidework.access.caller import Caller, Permission
from tidework.access.requires import requires
from tidework.api.context import CallerOfRequest, Context, CronTaskInPath, Namespace
from tidework.api.models.crontasks import (
    BackfillAnswer,
    BackfillOrder,
    CronTaskDetail,
    CronTaskModel,
    ResumeAnswer,
    RunAnswer,
    RunModel,
    RunOrder,
    RunSummaryModel,
    SuspendOrder,
    SuspensionModel,
    UnreadableModel,
    backfill_answer,
    crontask_detail,
    crontask_model,
    run_model,
    summary_model,
    suspension_model,
)
from tidework.api.models.orders import refuse_masked
from tidework.api.paging import Cursor, IdempotencyKey, Limit, Page
from tidework.clock import to_ms
from tidework.crontasks import acts
from tidework.crontasks.backfill import go_on, plan_backfill
from tidework.crontasks.errors import AlreadySuspendedError
from tidework.crontasks.found import FoundCronTask, find_crontasks, status_of
from tidework.crontasks.runs import summary_of_runs
from tidework.errors import ConfigurationError, IdempotencyError
from tidework.model.fire import Fire

router = APIRouter(tags=["crontasks"])
to_view = [Depends(requires(Permission.VIEWER))]

to_act = [Depends(requires(Permission.OPERATOR))]


class CronTasksPage(Page[CronTaskModel]):
    """A page of CronTasks; those in its place that cannot be read are named apart."""

    unreadable: list[UnreadableModel]


class RunsPage(Page[RunModel]):
    """A page of the history, and what the whole of it adds up to."""

    summary: RunSummaryModel


@router.get("/crontasks", dependencies=to_view)
async def list_crontasks(
    context: Context, namespace: Namespace, limit: Limit = 100, cursor: Cursor = None
) -> CronTasksPage:
    """The CronTasks of the namespace, by name."""
    known = await find_crontasks(context.broker, namespace)
    ahead = [found for found in known if cursor is None or _place(found) > cursor]
    page, now = ahead[:limit], context.clock.now()
    items, unreadable = [], []
    for found in page:
        if found.fault:
            told = UnreadableModel(name=found.name, queue=found.queue.name, reason=found.fault)
            unreadable.append(told)
        else:
            items.append(crontask_model(found, await status_of(context.broker, found, now)))
    further = _place(page[-1]) if len(ahead) > limit else None
    return CronTasksPage(items=items, next=further, unreadable=unreadable)


def _place(found: FoundCronTask) -> str:
    return f"{found.name}:{found.queue.name}"


@router.get("/crontasks/{crontask}", dependencies=to_view)
async def get_crontask(context: Context, crontask: CronTaskInPath) -> CronTaskDetail:
    """One CronTask: its document's spec, how it stands, and what its history adds up to."""
    status = await status_of(context.broker, crontask, context.clock.now())
    fires = await context.broker.fires(crontask.queue, crontask.uid)
    return crontask_detail(crontask, status, summary_of_runs(fires), context.redaction)


@router.get("/crontasks/{crontask}/runs", dependencies=to_view)
async def list_runs(
    context: Context, crontask: CronTaskInPath, limit: Limit = 100, cursor: Cursor = None
) -> RunsPage:
    """The last fires and runs, the newest first. They are kept longer than their jobs."""
    fires = await context.broker.fires(crontask.queue, crontask.uid)
    ahead = _behind(fires, cursor)
    page = ahead[:limit]
    return RunsPage(
        items=[run_model(fire) for fire in page],
        next=_cursor(fires, page[-1]) if len(ahead) > limit else None,
        summary=summary_model(summary_of_runs(fires)),
    )


def _cursor(fires: tuple[Fire, ...], last: Fire) -> str:
    """When the last one was decided, and how many of that moment come up to it."""
    same = [fire for fire in fires if fire.decided_at == last.decided_at]
    return f"{to_ms(last.decided_at)}:{same.index(last) + 1}"


def _behind(fires: tuple[Fire, ...], cursor: str | None) -> list[Fire]:
    if cursor is None:
        return list(fires)
    moment, _, passed = cursor.partition(":")
    if not (moment.isdecimal() and passed.isdecimal()):
        raise ConfigurationError(f"cursor {cursor!r} is not one that this list has given")
    same = [fire for fire in fires if to_ms(fire.decided_at) == int(moment)]
    return same[int(passed) :] + [f for f in fires if to_ms(f.decided_at) < int(moment)]


@router.post("/crontasks/{crontask}/run", dependencies=to_act, status_code=201)
async def run_crontask(
    context: Context,
    caller: CallerOfRequest,
    crontask: CronTaskInPath,
    response: Response,
    order: RunOrder | None = None,
    key: IdempotencyKey = None,
) -> RunAnswer:
    """Run it now, beside its schedule, also while it is suspended.

    Status 200 if the header `Idempotency-Key` was used before: `job` is the run that it made.
    """
    given = order or RunOrder()
    if given.params is not None:
        refuse_masked(given.params)
    nonce = secrets.token_hex(8) if key is None else f"key {key}"
    job_id, created = await acts.run_now(
        context.broker,
        crontask,
        nonce,
        context.clock.now(),
        params=given.params,
        note=_note(caller, given.reason),
    )
    if not created:
        response.status_code = 200
        await _refuse_other_params(context, crontask, job_id, given)
    return RunAnswer(job=job_id, created=created)


async def _refuse_other_params(
    context: Context, crontask: FoundCronTask, job_id: str, order: RunOrder
) -> None:
    """Raises IdempotencyError if the key has made a run with other params."""
    found = await context.broker.get_job(crontask.queue, job_id)
    if found is None or order.params is None:
        return
    if json.loads(found.body).get("params") != order.params:
        raise IdempotencyError(job_id)


@router.post("/crontasks/{crontask}/suspend", dependencies=to_act)
async def suspend_crontask(
    context: Context, caller: CallerOfRequest, crontask: CronTaskInPath, order: SuspendOrder
) -> SuspensionModel:
    """Have it rest until `resume`, or until a moment, without an edit of its document.

    What falls due meanwhile does not fire later. The same caller and reason may be sent again;
    where another suspension holds, that stays, and the status is 409.
    """
    answer = await acts.suspend(
        context.broker,
        crontask,
        context.clock.now(),
        by=caller.name,
        reason=order.reason,
        until=order.until,
    )
    if answer.before:
        raise AlreadySuspendedError(crontask.name, answer.suspension)
    return suspension_model(answer.suspension)


@router.post("/crontasks/{crontask}/resume", dependencies=to_act)
async def resume_crontask(context: Context, crontask: CronTaskInPath) -> ResumeAnswer:
    """End the suspension by a person. Status 409 if its document suspends it as well."""
    ended = await acts.resume(context.broker, crontask)
    return ResumeAnswer(
        resumed=ended is not None,
        suspension=None if ended is None else suspension_model(ended),
    )


@router.post("/crontasks/{crontask}/backfill", dependencies=to_act)
async def backfill_crontask(
    context: Context, caller: CallerOfRequest, crontask: CronTaskInPath, order: BackfillOrder
) -> BackfillAnswer:
    """Run the instants of a time that has passed, 1,000 at most, each at most once.

    With `dry_run` they are only shown. Unless its concurrencyPolicy is Allow, each request enqueues
    one run, and says by `left` that there are more.
    """
    now = context.clock.now()
    record = await context.broker.cron_record(crontask.queue, crontask.uid)
    plan = plan_backfill(crontask.spec, record, order.since, order.until or now)
    if order.dry_run:
        return backfill_answer(plan, None)
    note = _note(caller, order.reason)
    return backfill_answer(plan, await go_on(context.broker, crontask, plan.fires, now, note=note))


def _note(caller: Caller, reason: str) -> str:
    return f"{caller.name}: {reason}" if reason else caller.name
