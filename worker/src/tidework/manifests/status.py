"""What the operator writes into the status of TaskQueues and CronTasks.

The models shape what is written and the status half of the CRDs. Documents are never read through
them: a status of another version must not keep a spec from being served.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from tidework.manifests.part import LIST_KEYS, LIST_TYPE, Part
from tidework.model.job import JobState

MAX_ACTIVE = 20
MAX_NEXT = 5

Instant = Annotated[datetime, WithJsonSchema({"type": "string", "format": "date-time"})]
JobId = Annotated[str, Field(max_length=128)]


class ConditionStatus(StrEnum):
    """As in Kubernetes."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class StatusCondition(Part):
    """One aspect of the object, as metav1.Condition."""

    type: str = Field(
        min_length=1, max_length=316, description="The aspect, in CamelCase, such as Ready."
    )
    status: ConditionStatus = Field(description="Whether the condition holds.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="metadata.generation of the spec that this is about."
    )
    last_transition_time: Instant = Field(description="When status changed last.")
    reason: str = Field(
        min_length=1, max_length=1024, description="Why, as one word in CamelCase for programs."
    )
    message: str = Field(
        max_length=32_768, description="Why, for people, and what to do where something is wrong."
    )


class Status(Part):
    """What TaskQueue and CronTask have in common."""

    observed_generation: int | None = Field(
        default=None,
        ge=0,
        description="metadata.generation of the spec that this status is about.",
    )
    conditions: tuple[StatusCondition, ...] = Field(
        default=(),
        max_length=32,
        description="State of the object; Ready sums up the others.",
        json_schema_extra={LIST_TYPE: "map", LIST_KEYS: ["type"]},
    )

    def document(self) -> dict[str, Any]:
        """The status as the API server takes it; what is None is left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class TaskQueueStatus(Status):
    """What the operator found of a queue and its workers, moments ago."""

    replicas: int = Field(default=0, ge=0, description="Worker pods, those that drain included.")
    wanted_replicas: int = Field(default=0, ge=0, description="Replicas that the load asks for.")
    ready_replicas: int = Field(default=0, ge=0, description="Worker pods that are ready.")
    workers: str = Field(
        default="",
        max_length=32,
        description="Worker pods that are ready, and replicas that the load asks for: 2/3.",
    )
    selector: str = Field(
        default="", max_length=1024, description="Label selector of the worker pods, as text."
    )
    backlog: int = Field(default=0, ge=0, description="Jobs that wait for a worker.")
    running: int = Field(default=0, ge=0, description="Jobs under a lease.")
    scheduled: int = Field(default=0, ge=0, description="Jobs that are due later.")
    dead: int = Field(default=0, ge=0, description="Dead letters.")
    oldest_age_seconds: int = Field(
        default=0, ge=0, description="How long the oldest ready job has waited."
    )
    why: str = Field(
        default="", max_length=4096, description="Why there are so many replicas, in words."
    )
    last_scale_time: Instant | None = Field(
        default=None, description="When the number of replicas changed last."
    )


class CronVerdicts(Part):
    """What became of the fires so far, by number."""

    enqueued: int = Field(default=0, ge=0, description="Runs that were enqueued.")
    skipped_overlap: int = Field(
        default=0, ge=0, description="Skipped, as an earlier run had not ended."
    )
    missed_deadline: int = Field(
        default=0, ge=0, description="Missed: startingDeadlineSeconds had passed."
    )
    missed_catch_up: int = Field(
        default=0, ge=0, description="Missed during an outage; catchUp did not ask for them."
    )


class ManualRun(Part):
    """A run that was asked for by the annotation tidework.dev/run-now."""

    nonce: str = Field(max_length=1024, description="Value of the annotation.")
    job: JobId = Field(description="Id of the job that was enqueued for it.")


class CronTaskStatus(Status):
    """What became of the fires of a CronTask, and when the next ones are due."""

    last_schedule_time: Instant | None = Field(
        default=None, description="Fire time of the last run that was enqueued."
    )
    last_job: JobId | None = Field(default=None, description="Id of that run's job.")
    last_result: JobState | None = Field(
        default=None,
        description="State of that job: scheduled, ready and running are yet to end; succeeded, "
        "dead and cancelled are ends.",
    )
    next_schedule_times: tuple[Instant, ...] = Field(
        default=(), max_length=MAX_NEXT, description="The next fire times, five at most."
    )
    active: tuple[JobId, ...] = Field(
        default=(),
        max_length=MAX_ACTIVE,
        description="Ids of runs that have not ended, the first twenty.",
    )
    active_count: int = Field(default=0, ge=0, description="How many runs have not ended.")
    verdicts: CronVerdicts = Field(
        default=CronVerdicts(), description="Verdicts of the fires, by number."
    )
    run_now: ManualRun | None = Field(
        default=None, description="The last manual run that was asked for and enqueued."
    )
