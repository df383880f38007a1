"""A worker, as it says of itself: read with care, since it may be of any version."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, Field

from tidework.api.models.moments import Moment
from tidework.clock import from_ms
from tidework.model.backlog import Cordon
from tidework.roster import WorkerEntry, WorkerState


class WorkerJobModel(BaseModel):
    """A job that runs in a slot."""

    slot: int | None
    id: str
    task: str
    queue: str
    attempt: int | None
    since: Moment | None
    progress: Any


class WorkerModel(BaseModel):
    """One life of a worker process."""

    incarnation: str
    name: str = Field(description="As it was started; in a cluster that of its pod.")
    queues: list[str]
    state: WorkerState
    remark: str | None = Field(description="What the state means.")
    last_seen_at: Moment
    silent_seconds: float
    cordoned_by: list[str] = Field(description="`person`, `autoscaler`, both or none.")
    host: str | None
    pod: str | None
    node: str | None
    version: str | None
    pid: int | None
    slots: int | None
    async_slots: int | None
    busy: int | None
    started_at: Moment | None
    last_job_at: Moment | None
    processed: int | None
    failed: int | None
    jobs: list[WorkerJobModel] = Field(description="The jobs that it runs, oldest first.")
    jobs_left_out: int


def worker_model(entry: WorkerEntry) -> WorkerModel:
    """The model of one worker."""
    found, presence = entry.document, entry.presence
    return WorkerModel(
        incarnation=entry.incarnation,
        name=entry.name,
        queues=[queue.name for queue in entry.queues],
        state=entry.state,
        remark=entry.remark or None,
        last_seen_at=presence.seen_at,
        silent_seconds=max(0.0, round(presence.silent_for / timedelta(seconds=1), 3)),
        cordoned_by=[str(who.name).lower() for who in Cordon if who and who in entry.cordon],
        host=_text(found, "host"),
        pod=_text(found, "pod"),
        node=_text(found, "node"),
        version=_text(found, "version"),
        pid=_count(found, "pid"),
        slots=_count(found, "slots"),
        async_slots=_count(found, "async_slots"),
        busy=_count(found, "busy"),
        started_at=_moment(found, "started_at"),
        last_job_at=_moment(found, "last_job_at"),
        processed=_count(found, "processed"),
        failed=_count(found, "failed"),
        jobs=[_job(each) for each in _list(found, "jobs") if isinstance(each, Mapping)],
        jobs_left_out=_count(found, "jobs_left_out") or 0,
    )


def _job(found: Mapping[str, Any]) -> WorkerJobModel:
    return WorkerJobModel(
        slot=_count(found, "slot"),
        id=_text(found, "id") or "",
        task=_text(found, "task") or "",
        queue=_text(found, "queue") or "",
        attempt=_count(found, "attempt"),
        since=_moment(found, "since"),
        progress=found.get("progress"),
    )


def _text(found: Mapping[str, Any], name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) and value else None


def _count(found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    return value if type(value) is int and value >= 0 else None


def _list(found: Mapping[str, Any], name: str) -> list[Any]:
    value = found.get(name)
    return value if isinstance(value, list) else []


def _moment(found: Mapping[str, Any], name: str) -> datetime | None:
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        return None
    try:
        return from_ms(value * 1000)
    except (ValueError, OverflowError, OSError):
        return None
