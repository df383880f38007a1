"""CronTask: which task is enqueued when, and what happens to fires that overlap or were missed."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from tidework.errors import EnvelopeError, ScheduleError
from tidework.manifests.metadata import Document
from tidework.manifests.part import (
    LIST_TYPE,
    OPEN,
    TEN_YEARS_S,
    DnsLabel,
    Part,
    TaskName,
    cel,
    cel_rules,
    refuse,
)
from tidework.manifests.timing import Timing, reason_of
from tidework.manifests.timing_fields import (
    ZONE_RULES,
    CronText,
    ExcludedDays,
    Interval,
    Moment,
    Phase,
)
from tidework.model.documents.strict_json import encode_json
from tidework.model.fire import ConcurrencyPolicy
from tidework.model.identity import QueueName
from tidework.model.job import DEFAULT_PRIORITY, MAX_PARAMS_BYTES
from tidework.model.schedules.cron import DstPolicy, Schedule, load_zone


class CatchUp(StrEnum):
    """What becomes of fires that were due while nobody could decide them."""

    LATEST = "Latest"
    ALL = "All"
    NONE = "None"


_WHEN = ("schedule", "schedules", "every", "at")


class CronTaskSpec(Part):
    """What is enqueued, when, and under which policies."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel(
                " || ".join(f"has(self.{name})" for name in _WHEN),
                "give exactly one of schedule, schedules, every and at, such as "
                "schedule: '0 6 * * *' or every: 90s",
                "schedule",
            ),
            cel(
                f"[{', '.join(f'has(self.{name})' for name in _WHEN)}]"
                ".filter(given, given).size() < 2",
                "two of schedule, schedules, every and at are given; keep exactly one of them",
                "schedule",
            ),
            cel(
                "!has(self.every) && !has(self.at) || self.timeZone == 'UTC' || has(self.exclude)",
                "every and at have no zone (it is for excluded days and cron fields); "
                "remove timeZone, or use schedule",
                "timeZone",
            ),
            cel(
                "!has(self.phase) || has(self.every)",
                "a phase shifts an interval; remove it, or use every",
                "phase",
            ),
            cel(
                "!has(self.exclude) || !has(self.at)",
                "an instant (at) has no days to leave out; remove exclude",
                "exclude",
            ),
            cel(
                "!has(self.startTime) || !has(self.endTime) || self.startTime < self.endTime",
                "endTime is not after startTime; move it, or remove it",
                "endTime",
            ),
        )
    )

    queue: DnsLabel = Field(description="The TaskQueue, of the same namespace, to enqueue into.")
    task: TaskName = Field(description="Name of the task to run.")
    params: dict[str, Any] = Field(
        default={},
        description="Parameters of the task: JSON data, at most 256 KiB.",
        json_schema_extra={OPEN: True},
    )
    schedule: CronText | None = Field(
        default=None,
        description="Five cron fields (minute hour day-of-month month day-of-week), six with the "
        "second in front, or @hourly, @daily and the like. H is a value spread by the name. "
        "Exactly one of schedule, schedules, every and at.",
    )
    schedules: tuple[CronText, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=20,
        description="Several of the form of schedule: fires whenever one of them does.",
        json_schema_extra={LIST_TYPE: "atomic"},
    )
    every: Interval | None = Field(
        default=None,
        description="An interval in whole seconds such as 90s, 5m, 1h30m or 1d, counted from "
        "startTime, else from midnight UTC on 1970-01-01.",
    )
    phase: Phase | None = Field(
        default=None,
        description="With every: fires come so much later, such as 30s, less than the interval; "
        "H: by a part of the interval that the name spreads.",
    )
    at: Moment | None = Field(
        default=None,
        description="Fires once, at this instant (RFC 3339); never if it has passed when the "
        "CronTask comes to be.",
    )
    exclude: tuple[ExcludedDays, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=400,
        description="Days of timeZone on which nothing fires: 2026-12-25, "
        "2026-12-24..2027-01-01 (both included), 12-25 or 12-24..01-01 (every year).",
        json_schema_extra={LIST_TYPE: "atomic"},
    )
    time_zone: str = Field(
        default="UTC",
        max_length=64,
        description="IANA name of the zone of the schedule, such as Europe/Berlin.",
        json_schema_extra=ZONE_RULES,
    )
    dst: DstPolicy = Field(
        default=DstPolicy.ONCE,
        description="Where the zone's clock jumps. Once: a fixed time that is skipped or repeated "
        "fires once. Clock: as Kubernetes, skipped times never fire, repeated ones fire twice.",
    )
    suspend: bool = Field(default=False, description="No fires while true.")
    concurrency_policy: ConcurrencyPolicy = Field(
        default=ConcurrencyPolicy.ALLOW,
        description="What a fire does while an earlier run has not ended. Allow: runs beside it. "
        "Forbid: is skipped. Replace: the earlier run is cancelled.",
    )
    starting_deadline_seconds: int | None = Field(
        default=None,
        ge=0,
        le=TEN_YEARS_S,
        description="A fire that cannot be enqueued within so many seconds is missed. "
        "Without it: no such bound.",
    )
    catch_up: CatchUp = Field(
        default=CatchUp.LATEST,
        description="Fires that were due during an outage. Latest: the last of them is enqueued. "
        "All: all of them, within catchUpLimit. None: they are missed. "
        "Gaps up to 60 s are always made up in full.",
    )
    catch_up_limit: int = Field(
        default=100,
        ge=1,
        le=10_000,
        description="With catchUp All: at most so many fires are made up for, the latest ones.",
    )
    catch_up_window_seconds: int | None = Field(
        default=None,
        ge=1,
        le=TEN_YEARS_S,
        description="Fires older than so many seconds are missed. Without it: no such bound.",
    )
    start_time: Moment | None = Field(
        default=None, description="No fire is due before this instant (RFC 3339)."
    )
    end_time: Moment | None = Field(
        default=None, description="No fire is due after this instant (RFC 3339)."
    )
    max_runs: int | None = Field(
        default=None, ge=1, le=1_000_000_000, description="No fire after so many enqueued runs."
    )
    priority: int = Field(
        default=DEFAULT_PRIORITY, ge=0, le=9, description="0 is the most urgent, 9 the least."
    )
    max_attempts: int | None = Field(
        default=None, ge=1, le=1000, description="Attempts of each run; without it the task's own."
    )
    timeout_seconds: int | None = Field(
        default=None,
        ge=1,
        le=TEN_YEARS_S,
        description="Hard timeout of an attempt, at most the queue's hardTimeoutSeconds; "
        "without it the task's own.",
    )

    @field_validator("params")
    @classmethod
    def _travels(cls, found: dict[str, Any]) -> dict[str, Any]:
        try:
            size = len(encode_json(found, field=""))
        except EnvelopeError as error:
            raise ValueError(str(error)) from error
        if size > MAX_PARAMS_BYTES:
            raise ValueError(f"{size} bytes of JSON, the limit is {MAX_PARAMS_BYTES}")
        return found

    @field_validator("time_zone")
    @classmethod
    def _zone_exists(cls, found: str) -> str:
        try:
            load_zone(found)
        except ScheduleError as error:
            raise ValueError(reason_of(error)) from error
        return found

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        faults = []
        given = [name for name in _WHEN if getattr(self, name) is not None]
        if not given:
            fault = (
                "is required, or schedules, every or at: give exactly one, such as "
                "'0 6 * * *' or every: 90s"
            )
            faults.append(("schedule", fault))
        if len(given) > 1:
            fault = f"{' and '.join(given)} are given; keep exactly one of them"
            faults.append(("schedule", fault))
        without_zone = self.every is not None or self.at is not None
        if without_zone and self.time_zone != "UTC" and self.exclude is None:
            fault = "every and at have no zone; remove it, or use schedule"
            faults.append(("timeZone", fault))
        if self.phase is not None and self.every is None:
            faults.append(("phase", "shifts an interval; remove it, or use every"))
        if self.exclude is not None and self.at is not None:
            faults.append(("exclude", "an instant (at) has no days to leave out; remove it"))
        if self.start_time and self.end_time and self.end_time <= self.start_time:
            faults.append(("endTime", "is not after startTime"))
        refuse(faults)
        return self

    @property
    def timing(self) -> Timing:
        """The fields that say when it fires."""
        schedules = self.schedules or (() if self.schedule is None else (self.schedule,))
        return Timing(
            schedules=schedules,
            every=self.every,
            phase=self.phase,
            at=self.at,
            time_zone=self.time_zone,
            dst=self.dst,
            exclude=self.exclude or (),
            start=self.start_time,
        )

    def place_of(self, error: ScheduleError) -> str:
        """The field that a refusal is about which its fields one by one did not show."""
        if self.phase is not None and error.expression == self.phase:
            return "phase"
        if error.expression in (self.schedule, *(self.schedules or ())):
            return "schedule" if self.schedule is not None else "schedules"
        return "exclude"


class CronTask(Document):
    """A task that is enqueued by a schedule."""

    api_version: Literal["tidework.dev/v1alpha1"] = Field(
        default="tidework.dev/v1alpha1", description="Version of this document's form."
    )
    kind: Literal["CronTask"] = Field(default="CronTask", description="Always CronTask.")
    spec: CronTaskSpec = Field(description="The desired state.")

    @property
    def queue_name(self) -> QueueName:
        """The queue that fires are enqueued into."""
        return QueueName(self.metadata.namespace, self.spec.queue)

    @property
    def spread(self) -> str:
        """What ``H`` is hashed from."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def to_schedule(self) -> Schedule:
        """The instants at which it fires, startTime and endTime not yet applied."""
        return self.spec.timing.schedule(self.spread)

    @model_validator(mode="after")
    def _fires(self) -> Self:
        try:
            self.to_schedule()
        except ScheduleError as error:
            place = self.spec.place_of(error)
            refuse([(("spec", place), reason_of(error))])
        return self
