"""From a CronTask document, out of a file or the cluster, to what the scheduler works with."""

from __future__ import annotations

from datetime import datetime, timedelta

from tidework.manifests.crontask import CronTask
from tidework.scheduler.due import CatchUp, CatchUpMode, FireRules
from tidework.scheduler.spec import RUN_NOW_ANNOTATION, CronSpec


def spec_of(
    crontask: CronTask, now: datetime, *, last_scheduled: datetime | None = None
) -> CronSpec:
    """The CronSpec of a document.

    now:            when it was read: the creation of a document that does not say its own
    last_scheduled: status.lastScheduleTime, where there is one

    Raises ScheduleError and ConfigurationError for what the scheduler cannot serve.
    """
    spec, metadata = crontask.spec, crontask.metadata
    return CronSpec(
        uid=metadata.uid,
        name=metadata.name,
        queue=crontask.queue_name,
        task=spec.task,
        rules=FireRules(
            schedule=crontask.to_schedule(),
            deadline=_seconds(spec.starting_deadline_seconds),
            catch_up=CatchUp(
                mode=CatchUpMode(spec.catch_up.value),
                limit=spec.catch_up_limit,
                window=_seconds(spec.catch_up_window_seconds),
            ),
            start=spec.start_time,
            end=spec.end_time,
        ),
        created=metadata.creation_timestamp or now,
        last_scheduled=last_scheduled,
        params=spec.params,
        suspend=spec.suspend,
        policy=spec.concurrency_policy,
        max_runs=spec.max_runs,
        priority=spec.priority,
        max_attempts=spec.max_attempts,
        timeout=_seconds(spec.timeout_seconds),
        run_now=metadata.annotations.get(RUN_NOW_ANNOTATION, ""),
        # Nulls stay: within params they are data, elsewhere the parser takes them as absent.
        document=crontask.model_dump_json(by_alias=True, exclude={"status"}).encode(),
    )


def _seconds(found: int | None) -> timedelta | None:
    return None if found is None else timedelta(seconds=found)
