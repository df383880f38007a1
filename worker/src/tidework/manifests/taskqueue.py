"""TaskQueue: which application works off a queue, with which bounds on its jobs and replicas."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tidework.manifests.metadata import Document
from tidework.manifests.part import Part, checked, refuse
from tidework.manifests.scaling import Scaling
from tidework.model.identity import QueueName
from tidework.model.lease import LEASE, QueueLimits

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_APP = re.compile(rf"{_NAME}(\.{_NAME})*(:{_NAME}(\.{_NAME})*)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEN_YEARS = 315_360_000

AppName = Annotated[
    str,
    checked(
        lambda text: _APP.fullmatch(text) is not None,
        "name the module as Python imports it, such as shop.tasks or shop.tasks:app",
    ),
]
VariableName = Annotated[
    str,
    checked(
        lambda text: _VARIABLE.fullmatch(text) is not None,
        "use letters, digits and '_', not starting with a digit",
    ),
]
VariableValue = Annotated[
    str, checked(lambda text: "\0" not in text, "an environment variable cannot hold a NUL")
]


class EnvVar(Part):
    """One environment variable."""

    name: VariableName = Field(description="Name of the variable.")
    value: VariableValue = Field(default="", max_length=131_072, description="Its value, as text.")


class Retention(Part):
    """How long finished jobs are kept: bounded by time and by number."""

    succeeded_seconds: int = Field(
        default=3600,
        ge=1,
        le=_TEN_YEARS,
        description="Succeeded and cancelled jobs are pruned after so many seconds.",
    )
    dead_seconds: int = Field(
        default=604_800,
        ge=1,
        le=_TEN_YEARS,
        description="Dead letters are pruned after so many seconds.",
    )
    count: int = Field(
        default=10_000,
        ge=1,
        le=10_000_000,
        description="At most so many finished jobs are kept per state, the latest.",
    )


class Recycle(Part):
    """When the child process of a slot is replaced; always between two jobs."""

    jobs: int = Field(
        default=1000, ge=1, le=100_000_000, description="After so many jobs of one child."
    )
    memory_mib: int = Field(
        default=128,
        ge=16,
        le=16_777_216,
        alias="memoryMiB",
        description="When a child holds more than so many MiB of memory (PSS).",
    )


class TaskQueueSpec(Part):
    """What is wanted of the queue and its workers."""

    app: AppName = Field(
        max_length=200,
        description="The application: module, or module:attribute, with the tasks of this queue.",
    )
    image: str | None = Field(
        default=None,
        min_length=1,
        max_length=1024,
        description="Container image of the workers. `tidework dev` runs local processes and "
        "ignores it.",
    )
    min_replicas: int = Field(
        default=0, ge=0, le=10_000, description="Least number of replicas; 0 scales to zero."
    )
    max_replicas: int = Field(
        default=5,
        ge=1,
        le=10_000,
        description="Greatest number of replicas, those that still drain included.",
    )
    slots: int = Field(
        default=1, ge=1, le=1000, description="Jobs that one replica runs at the same time."
    )
    hard_timeout_seconds: int = Field(
        default=600,
        ge=1,
        le=_TEN_YEARS,
        description="An attempt is killed after so many seconds; the greatest timeout that a task "
        "or a job may have.",
    )
    max_grace_seconds: int = Field(
        default=3600,
        ge=1,
        le=_TEN_YEARS,
        description="A drain waits for running jobs for hardTimeoutSeconds + 10, but no longer "
        "than this; then it hands them back.",
    )
    lease_seconds: int = Field(
        default=int(LEASE.total_seconds()),
        ge=1,
        le=3600,
        description="Jobs of a worker that died are run again after so many seconds.",
    )
    scaling: Scaling = Field(
        default=Scaling(), description="How the number of replicas follows the load."
    )
    retention: Retention = Field(default=Retention(), description="How long ended jobs are kept.")
    recycle: Recycle = Field(default=Recycle(), description="When child processes are replaced.")
    env: tuple[EnvVar, ...] = Field(
        default=(), max_length=1000, description="Environment variables of the workers."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        faults = []
        if self.max_replicas < self.min_replicas:
            fault = f"{self.max_replicas} is below minReplicas, which is {self.min_replicas}"
            faults.append(("maxReplicas", fault))
        for name, times in Counter(variable.name for variable in self.env).items():
            if times > 1:
                faults.append(("env", f"{name!r} is given {times} times; keep one"))
        refuse(faults)
        return self


class TaskQueue(Document):
    """A queue and the workers that work it off."""

    api_version: Literal["tidework.dev/v1alpha1"] = Field(
        default="tidework.dev/v1alpha1", description="Version of this document's form."
    )
    kind: Literal["TaskQueue"] = Field(default="TaskQueue", description="Always TaskQueue.")
    spec: TaskQueueSpec = Field(description="What is wanted.")

    @property
    def queue_name(self) -> QueueName:
        """The queue that the document is about."""
        return QueueName(self.metadata.namespace, self.metadata.name)

    @property
    def limits(self) -> QueueLimits:
        """The bounds that the queue's scripts apply."""
        retention = self.spec.retention
        return QueueLimits(
            lease=timedelta(seconds=self.spec.lease_seconds),
            keep_succeeded=timedelta(seconds=retention.succeeded_seconds),
            keep_dead=timedelta(seconds=retention.dead_seconds),
            keep_count=retention.count,
        )
