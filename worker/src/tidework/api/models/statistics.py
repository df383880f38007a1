"""What happened to jobs, as counts, rates and times; see docs/queues.md, Statistics."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tidework.api.models.moments import Moment
from tidework.model.statistics import (
    Point,
    Series,
    Step,
    TaskStatistics,
    Totals,
    totals_document,
)


class TimesModel(BaseModel):
    """Mean and percentiles in seconds; null where nothing was measured. A percentile is off by a
    factor of 1.41 at most."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


class TotalsModel(BaseModel):
    """What was counted in a time."""

    enqueued: int
    started: int = Field(description="Claims; a job that was released or lost is claimed again.")
    succeeded: int
    failed: int = Field(description="Attempts that raised or ran into a timeout.")
    retried: int = Field(description="Failed attempts that another one follows.")
    dead: int
    lost: int = Field(description="Attempts whose worker or child died.")
    released: int = Field(description="Attempts that were given back and do not count.")
    cancelled: int
    success_rate: float | None = Field(
        description="Of the attempts that succeeded, failed or were lost, the share that succeeded."
    )
    wait_seconds: TimesModel = Field(description="From when a job was due until it was claimed.")
    run_seconds: TimesModel = Field(description="How long attempts ran, however they ended.")


class PointModel(TotalsModel):
    """A minute, hour or day of UTC, from when it began."""

    at: Moment


class StatsModel(BaseModel):
    """A series, oldest first, and the last hour and day."""

    namespace: str
    queue: str | None = Field(description="null: all queues of the namespace together.")
    task: str = Field(description="'(all)': all tasks together.")
    step: str
    step_seconds: int
    points: list[PointModel] = Field(
        description="A time in which nothing was counted has no point: it is a gap, not a zero."
    )
    last_hour: TotalsModel
    last_day: TotalsModel


class TaskModel(BaseModel):
    """A task of a queue. '(all)' is the sum of all, '(others)' that of tasks beyond the first 200,
    '(none)' counts documents that did not validate."""

    task: str
    announced: bool = Field(description="Did a worker say within a day that it has this task?")
    per_minute: float = Field(description="Jobs that succeeded in the last hour, per minute.")
    last_hour: TotalsModel
    last_day: TotalsModel


def totals_model(found: Totals) -> TotalsModel:
    """The model of what was counted."""
    return TotalsModel(**totals_document(found))


def point_model(found: Point) -> PointModel:
    """The model of one point."""
    return PointModel(at=found.at, **totals_document(found.totals))


def stats_model(
    namespace: str, queue: str | None, series: Series, hour: Totals, day: Totals
) -> StatsModel:
    """A series with its last hour and day."""
    return StatsModel(
        namespace=namespace,
        queue=queue,
        task=series.task,
        step=series.step.name.lower(),
        step_seconds=series.step.minutes * 60,
        points=[point_model(point) for point in series.points],
        last_hour=totals_model(hour),
        last_day=totals_model(day),
    )


def task_model(found: TaskStatistics, *, announced: bool) -> TaskModel:
    """The model of one task."""
    minutes = Step.HOUR.minutes
    return TaskModel(
        task=found.task,
        announced=announced,
        per_minute=found.hour.succeeded / minutes,
        last_hour=totals_model(found.hour),
        last_day=totals_model(found.day),
    )
