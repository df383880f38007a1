"""CronTask: which task is enqueued when, and what happens to fires that overlap or were missed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from tidework.errors import EnvelopeError, ScheduleError
from tidework.manifests.metadata import Document
from tidework.manifests.part import (
    OPEN,
    TEN_YEARS_S,
    DnsLabel,
    Part,
    TaskName,
    cel,
    cel_rules,
    refuse,
)
from tidework.model.cron import DstPolicy, Every, Schedule, load_zone, parse_cron
from tidework.model.cron_parse import DESCRIPTORS, MAX_LENGTH
from tidework.model.fire import ConcurrencyPolicy
from tidework.model.identity import QueueName
from tidework.model.job import DEFAULT_PRIORITY, MAX_PARAMS_BYTES
from tidework.model.schedule import EPOCH
from tidework.model.strict_json import encode_json

_DURATION = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")


class CatchUp(StrEnum):
    """What becomes of fires that were due while nobody could decide them."""

    LATEST = "Latest"
    ALL = "All"
    NONE = "None"


def _whole_second(found: datetime) -> datetime:
    if found.microsecond:
        raise ValueError("has a fraction of a second; fires lie on whole seconds, so drop it")
    return found.astimezone(UTC)


Moment = Annotated[
    AwareDatetime,
    AfterValidator(_whole_second),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "maxLength": 40}
        | cel_rules(
            cel(
                "self.getMilliseconds() == 0",
                "has a fraction of a second; fires lie on whole seconds, so drop it",
            )
        )
    ),
]

# The API server knows the outline of a schedule; what is wrong within a field, or with the name of
# a zone, the condition ScheduleValid tells.
_SCHEDULE_RULES = cel_rules(
    cel(
        "!self.contains('TZ=')",
        "TZ= inside the schedule is not served; name the zone in the field timeZone",
    ),
    cel(
        r"self.matches('^[ \\t]*[!-~]+([ \\t]+[!-~]+){4}[ \\t]*$')"
        f" || self in [{', '.join(repr(name) for name in DESCRIPTORS)}]",
        "write five fields (minute hour day-of-month month day-of-week), "
        f"or one of {', '.join(DESCRIPTORS)}",
    ),
)
_EVERY_RULES = cel_rules(
    cel(
        "self.matches('^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$') && self.matches('[1-9]')",
        "write an interval of 1s or more as 90s, 5m, 1h30m or 1d",
    )
)
_ZONE_RULES = cel_rules(
    cel(
        "self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$') && self != 'Local'",
        "use an IANA name of a time zone, such as Europe/Berlin or UTC",
    )
)


class CronTaskSpec(Part):
    """What is enqueued, when, and under which policies."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel(
                "has(self.schedule) || has(self.every)",
                "give exactly one of schedule and every, such as schedule: '0 6 * * *' "
                "or every: 90s",
                "schedule",
            ),
            cel(
                "!has(self.schedule) || !has(self.every)",
                "schedule and every are both given; keep exactly one of them",
                "every",
            ),
            cel(
                "!has(self.every) || self.timeZone == 'UTC'",
                "an interval (every) counts seconds and has no zone; remove timeZone, "
                "or use schedule",
                "timeZone",
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
    schedule: str | None = Field(
        default=None,
        max_length=MAX_LENGTH,
        description="Five cron fields (minute hour day-of-month month day-of-week), or @hourly, "
        "@daily and the like. Exactly one of schedule and every.",
        json_schema_extra=_SCHEDULE_RULES,
    )
    every: str | None = Field(
        default=None,
        max_length=40,
        description="An interval in whole seconds such as 90s, 5m, 1h30m or 1d, counted from "
        "startTime, else from midnight UTC on 1970-01-01. Exactly one of schedule and every.",
        json_schema_extra=_EVERY_RULES,
    )
    time_zone: str = Field(
        default="UTC",
        max_length=64,
        description="IANA name of the zone of the schedule, such as Europe/Berlin.",
        json_schema_extra=_ZONE_RULES,
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
            raise ValueError(_reason(error)) from error
        return found

    @field_validator("schedule")
    @classmethod
    def _cron_reads(cls, found: str | None) -> str | None:
        if found is not None:
            try:
                parse_cron(found)
            except ScheduleError as error:
                raise ValueError(_reason(error)) from error
        return found

    @field_validator("every")
    @classmethod
    def _interval_reads(cls, found: str | None) -> str | None:
        if found is not None:
            _interval(found)
        return found

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        faults = []
        if self.schedule is None and self.every is None:
            fault = "is required, or every: give exactly one, such as '0 6 * * *' or every: 90s"
            faults.append(("schedule", fault))
        if self.schedule is not None and self.every is not None:
            faults.append(("every", "schedule is given too; keep exactly one of them"))
        if self.every is not None and self.time_zone != "UTC":
            fault = "an interval counts seconds and has no zone; remove it, or use schedule"
            faults.append(("timeZone", fault))
        if self.start_time and self.end_time and self.end_time <= self.start_time:
            faults.append(("endTime", "is not after startTime"))
        refuse(faults)
        return self


class CronTask(Document):
    """A task that is enqueued by a schedule."""

    api_version: Literal["tidework.dev/v1alpha1"] = Field(
        default="tidework.dev/v1alpha1", description="Version of this document's form."
    )
    kind: Literal["CronTask"] = Field(default="CronTask", description="Always CronTask.")
    spec: CronTaskSpec = Field(description="What is wanted.")

    @property
    def queue_name(self) -> QueueName:
        """The queue that fires are enqueued into."""
        return QueueName(self.metadata.namespace, self.spec.queue)

    def to_schedule(self) -> Schedule:
        """The instants at which it fires, startTime and endTime not yet applied."""
        spec = self.spec
        if spec.schedule is not None:
            return parse_cron(spec.schedule, time_zone=spec.time_zone, dst=spec.dst)
        return Every(_interval(spec.every or ""), spec.start_time or EPOCH)


def _interval(text: str) -> timedelta:
    """Read ``1d2h3m4s``, any part of it. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        raise ValueError(f"{text!r} is no interval; write it as 90s, 5m, 1h30m or 1d")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if not 1 <= total <= TEN_YEARS_S:
        raise ValueError(f"{text!r} has to lie between 1s and 3650d")
    return timedelta(seconds=total)


def _reason(error: ScheduleError) -> str:
    place = "" if error.position is None else f" at position {error.position}"
    hint = f"; {error.hint}" if error.hint else ""
    return f"{error.expression!r}{place}: {error.reason}{hint}"
