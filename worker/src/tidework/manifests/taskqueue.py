"""TaskQueue: which application works off a queue, with which bounds on its jobs and replicas.

What only a cluster needs (image, resources, the pods' template) is ignored by `tidework dev`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from tidework.manifests.metadata import Document
from tidework.manifests.part import (
    LIST_KEYS,
    LIST_TYPE,
    TEN_YEARS_S,
    DnsLabel,
    Form,
    Part,
    cel,
    cel_rules,
    refuse,
)
from tidework.manifests.pod import (
    Argument,
    EnvVar,
    ImageName,
    ImagePullPolicy,
    PodTemplate,
    Resources,
)
from tidework.manifests.pod_objects import repeated
from tidework.manifests.scaling import Scaling
from tidework.model.durability import Durability
from tidework.model.identity import QueueName
from tidework.model.lease import LEASE, QueueLimits

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_MODULE = rf"{_NAME}(\.{_NAME})*(:{_NAME}(\.{_NAME})*)?"
_COMMANDS_FILE = r"[A-Za-z0-9_./-]+\.(yaml|yml|json)"

AppName = Annotated[
    str,
    Field(max_length=200),
    Form(
        f"{_MODULE}|{_COMMANDS_FILE}",
        "name the module as Python imports it, such as shop.tasks or shop.tasks:app, "
        "or a commands file such as commands.yaml",
    ),
]


IMAGE_MISSING = "name the image with the application, which builds on tidework/worker"

ONE_KIND = (
    "keep asyncSlots for a queue of async tasks, which share an event loop, or slots for any other "
    "queue, and remove the other one"
)

CLUSTER_FIELDS = frozenset(
    {
        "image",
        "image_pull_policy",
        "command",
        "args",
        "redis",
        "replicas",
        "resources",
        "template",
    }
)
"""Fields of a TaskQueueSpec that `tidework dev` ignores."""


class Retention(Part):
    """How long finished jobs are kept: bounded by time and by number."""

    succeeded_seconds: int = Field(
        default=3600,
        ge=1,
        le=TEN_YEARS_S,
        description="Succeeded and cancelled jobs are pruned after so many seconds.",
    )
    dead_seconds: int = Field(
        default=604_800,
        ge=1,
        le=TEN_YEARS_S,
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


class Memory(Part):
    """When a replica ends a child under its jobs, before the kernel ends all of the container."""

    limit_mib: int | None = Field(
        default=None,
        ge=64,
        le=16_777_216,
        alias="limitMiB",
        description="A limit for the memory of all processes of a replica together (MiB of PSS), "
        "besides that of its container (resources.limits.memory): the smaller one counts. Without "
        "either no child is ended.",
    )
    most_percent: int = Field(
        default=90,
        ge=10,
        le=100,
        description="From so many percent of the limit on the largest child is ended. Lower it for "
        "tasks that take memory faster than 1 GiB a second.",
    )


class TaskQueueSpec(Part):
    """What is wanted of the queue and its workers."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            # Of the API server alone: `tidework dev` runs local processes. See cluster_faults.
            cel("has(self.image)", IMAGE_MISSING, "image"),
            cel(
                "self.minReplicas <= self.maxReplicas",
                "maxReplicas is below minReplicas; raise it, or lower minReplicas",
                "maxReplicas",
            ),
            cel(
                "!has(self.slots) || self.asyncSlots == 0",
                f"slots and asyncSlots are both given; {ONE_KIND}",
                "asyncSlots",
            ),
            cel(
                "!has(self.memory.limitMiB) || self.recycle.memoryMiB <= self.memory.limitMiB",
                "recycle.memoryMiB is above memory.limitMiB, so that a child would be ended under "
                "its job and never replaced between two; lower it, or raise limitMiB",
                "recycle.memoryMiB",
            ),
        )
    )

    app: AppName = Field(
        description="The application: module, or module:attribute, with the tasks of this queue; "
        "or a commands file (.yaml, .yml, .json), counted from the folder in which workers start.",
    )
    image: ImageName | None = Field(
        default=None,
        description="Container image of the workers; needed in a cluster. `tidework dev` runs "
        "local processes and ignores it.",
    )
    image_pull_policy: ImagePullPolicy | None = Field(
        default=None,
        description="When the image is pulled; without it as Kubernetes does. Ignored by "
        "`tidework dev`.",
    )
    command: tuple[Argument, ...] = Field(
        default=(),
        max_length=100,
        description="Entry point of the worker container instead of the image's; it has to end up "
        "as `tidework worker`. Ignored by `tidework dev`.",
    )
    args: tuple[Argument, ...] = Field(
        default=(),
        max_length=100,
        description="Arguments of the entry point instead of the image's. Ignored by "
        "`tidework dev`.",
    )
    redis: DnsLabel = Field(
        default="default",
        description="Name of a Redis connection in the operator's configuration. Ignored by "
        "`tidework dev`.",
    )
    replicas: int | None = Field(
        default=None,
        ge=0,
        le=10_000,
        description="Pins the number of replicas: while it is set the load is not followed, and "
        "minReplicas and maxReplicas do not bound it. `kubectl scale` and a foreign "
        "HorizontalPodAutoscaler write it; remove it to follow the load again. Ignored by "
        "`tidework dev`.",
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
    slots: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Jobs that one replica runs at the same time, a process each; 1 if neither "
        "slots nor asyncSlots is given.",
    )
    async_slots: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="Jobs that one replica runs at the same time on one event loop, instead of "
        "slots: for a queue of async tasks. 0 = the queue has slots.",
    )
    hard_timeout_seconds: int = Field(
        default=600,
        ge=1,
        le=TEN_YEARS_S,
        description="An attempt is killed after so many seconds; the greatest timeout that a task "
        "or a job may have.",
    )
    cancel_grace_seconds: int = Field(
        default=5,
        ge=0,
        le=TEN_YEARS_S,
        description="A running job that is cancelled is asked to stop, and killed after so many "
        "seconds.",
    )
    max_grace_seconds: int = Field(
        default=3600,
        ge=1,
        le=TEN_YEARS_S,
        description="A drain waits for running jobs for hardTimeoutSeconds + 10, but no longer "
        "than this; then it releases them.",
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
    durability: Durability = Field(
        default=Durability.ASYNC,
        description="When a change of the queue counts as stored. async: Redis has it; replica: a "
        "replica has it too (WAIT); fsync: it is on the disk of Redis (WAITAOF: Redis or Valkey "
        "7.2 or later, with the append-only file on).",
    )
    recycle: Recycle = Field(default=Recycle(), description="When child processes are replaced.")
    memory: Memory = Field(
        default=Memory(), description="When a child process is ended because memory is short."
    )
    env: tuple[EnvVar, ...] = Field(
        default=(),
        max_length=1000,
        description="Environment variables of the workers.",
        json_schema_extra={LIST_TYPE: "map", LIST_KEYS: ["name"]},
    )
    resources: Resources = Field(
        default=Resources(),
        description="Resources of the worker container. Ignored by `tidework dev`.",
    )
    template: PodTemplate = Field(
        default=PodTemplate(),
        description="What the pods have besides. Ignored by `tidework dev`.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        faults: list[tuple[str | tuple[str, ...], str]] = []
        if self.max_replicas < self.min_replicas:
            fault = f"{self.max_replicas} is below minReplicas, which is {self.min_replicas}"
            faults.append(("maxReplicas", fault))
        if self.slots and self.async_slots:
            fault = f"{self.async_slots} is given beside slots, which is {self.slots}; {ONE_KIND}"
            faults.append(("asyncSlots", fault))
        most, limit = self.recycle.memory_mib, self.memory.limit_mib
        if limit is not None and most > limit:
            fault = (
                f"{most} is above memory.limitMiB, which is {limit}: a child would be ended under "
                "its job and never replaced between two; lower it, or raise limitMiB"
            )
            faults.append((("recycle", "memoryMiB"), fault))
        faults += repeated("env", (variable.name for variable in self.env))
        refuse(faults)
        return self

    @property
    def places(self) -> int:
        """Jobs that a replica runs at the same time."""
        return self.async_slots or self.slots or 1


class TaskQueue(Document):
    """A queue and the workers that work it off."""

    api_version: Literal["tidework.dev/v1alpha1"] = Field(
        default="tidework.dev/v1alpha1", description="Version of this document's form."
    )
    kind: Literal["TaskQueue"] = Field(default="TaskQueue", description="Always TaskQueue.")
    spec: TaskQueueSpec = Field(description="The desired state.")

    @property
    def queue_name(self) -> QueueName:
        """The queue that the document is about."""
        return QueueName(self.metadata.namespace, self.metadata.name)

    @property
    def capacity(self) -> int:
        """Jobs that a replica runs at the same time."""
        return self.spec.places

    @property
    def cluster_faults(self) -> tuple[str, ...]:
        """Why a cluster refuses what `tidework dev` runs: field and reason, a line each."""
        return () if self.spec.image is not None else (f"spec.image: {IMAGE_MISSING}",)

    @property
    def plain_env(self) -> dict[str, str]:
        """Environment variables whose values stand in the document itself."""
        env = self.spec.env
        return {variable.name: variable.value for variable in env if variable.value_from is None}

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
