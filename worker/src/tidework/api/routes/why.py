"""Why a job does not run, in words and as data."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from tidework.access.caller import Permission
from tidework.access.requires import requires
from tidework.api.context import Context, Queue
from tidework.api.models.moments import Moment
from tidework.api.routes.jobs import JobId
from tidework.why.explain import explain
from tidework.why.facts import gather_facts
from tidework.why.finding import Case, Finding

router = APIRouter(tags=["jobs"])


class FindingModel(BaseModel):
    """One reason."""

    code: Case
    text: str
    remedy: str | None
    until: Moment | None = Field(description="When the reason ends by itself.")
    ahead: int | None = Field(description="Jobs before it in line.")
    wait_seconds: float | None = Field(description="About how long it still waits.")


class WhyModel(BaseModel):
    """The first finding is the reason; the job would meet the others next."""

    id: str
    queue: str
    findings: list[FindingModel]


@router.get("/jobs/{queue}/{job_id}/why", dependencies=[Depends(requires(Permission.VIEWER))])
async def why_job(context: Context, queue: Queue, job_id: JobId) -> WhyModel:
    """Why the job does not run, or what it does: with the place in line and what to do.

    A job that is not known is a finding as well, and names the queue that has it.
    """
    found = explain(await gather_facts(context.broker, queue, job_id))
    return WhyModel(id=job_id, queue=queue.name, findings=[_model(each) for each in found.findings])


def _model(found: Finding) -> FindingModel:
    return FindingModel(
        code=found.case,
        text=found.text,
        remedy=found.remedy or None,
        until=found.until,
        ahead=found.ahead,
        wait_seconds=found.wait_s,
    )
