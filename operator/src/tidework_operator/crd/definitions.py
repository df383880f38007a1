"""The two CustomResourceDefinitions: what names and shows the kinds, around their schemas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from tidework.manifests import (
    CronTaskSpec,
    CronTaskStatus,
    TaskQueueSpec,
    TaskQueueStatus,
)
from tidework_operator.cluster import GROUP, Kind, Object
from tidework_operator.crd.schema import Schema, structural_schema

VERSION = "v1alpha1"

_NAME_RULE = {
    "rule": "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",
    "message": "metadata.name: use at most 63 characters of a-z, 0-9 and '-', starting and ending "
    "with a letter or digit",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``; ``wide``: shown with -o wide only."""

    name: str
    type: str
    path: str
    description: str
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """What one kind needs beyond its models."""

    kind: Kind
    singular: str
    short_name: str
    description: str
    spec: type[BaseModel]
    status: type[BaseModel]
    columns: tuple[Column, ...]
    scale: dict[str, str] | None = None

    @property
    def name(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.kind.value.plural}.{GROUP}"

    def document(self) -> Object:
        """The CustomResourceDefinition."""
        subresources: Object = {"status": {}}
        if self.scale is not None:
            subresources["scale"] = self.scale
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {
                    "kind": self.kind.value.kind,
                    "listKind": f"{self.kind.value.kind}List",
                    "plural": self.kind.value.plural,
                    "singular": self.singular,
                    "shortNames": [self.short_name],
                    "categories": ["tidework"],
                },
                "versions": [
                    {
                        "name": VERSION,
                        "served": True,
                        "storage": True,
                        "additionalPrinterColumns": [_column(found) for found in self.columns],
                        "subresources": subresources,
                        "schema": {"openAPIV3Schema": self._schema()},
                    }
                ],
            },
        }

    def _schema(self) -> Schema:
        return {
            "description": self.description,
            "type": "object",
            "x-kubernetes-validations": [_NAME_RULE],
            "required": ["spec"],
            "properties": {
                "apiVersion": {
                    "description": f"Version of this document's form: {GROUP}/{VERSION}.",
                    "type": "string",
                },
                "kind": {
                    "description": f"Always {self.kind.value.kind}.",
                    "type": "string",
                },
                "metadata": {"type": "object"},
                "spec": structural_schema(self.spec),
                "status": structural_schema(self.status, defaults=False),
            },
        }


def _column(found: Column) -> dict[str, Any]:
    column: dict[str, Any] = {"name": found.name, "type": found.type}
    if found.wide:
        column["priority"] = 1
    return column | {"jsonPath": found.path, "description": found.description}


_IS_READY = ".status.conditions[?(@.type=='Ready')]"
_AGE = Column("Age", "date", ".metadata.creationTimestamp", "Time since it was created.")

TASK_QUEUE = Definition(
    kind=Kind.TASK_QUEUE,
    singular="taskqueue",
    short_name="tq",
    description="A queue of jobs and the workers that serve it: as many as the load asks for, "
    "down to none.",
    spec=TaskQueueSpec,
    status=TaskQueueStatus,
    columns=(
        Column("Ready", "string", f"{_IS_READY}.status", "Whether the queue is served."),
        Column("Reason", "string", f"{_IS_READY}.reason", "Why it is ready, or is not."),
        Column("Workers", "string", ".status.workers", "Pods that are ready/replicas wanted."),
        Column("Jobs Waiting", "integer", ".status.backlog", "Jobs that wait for a worker."),
        Column("Jobs Running", "integer", ".status.running", "Jobs under a lease."),
        Column("Jobs Later", "integer", ".status.scheduled", "Jobs that are due later."),
        Column("Dead Letters", "integer", ".status.dead", "Jobs kept for a person."),
        Column("Oldest(s)", "integer", ".status.oldestAgeSeconds", "Wait of the oldest ready job."),
        Column("Pods", "integer", ".status.replicas", "Those that drain included.", wide=True),
        Column("Why", "string", ".status.why", "Why there are so many replicas.", wide=True),
        _AGE,
    ),
    scale={
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
)

CRON_TASK = Definition(
    kind=Kind.CRON_TASK,
    singular="crontask",
    short_name="ct",
    description="A task that is enqueued by a schedule: expressions of cron in a time zone, "
    "an interval, or an instant.",
    spec=CronTaskSpec,
    status=CronTaskStatus,
    columns=(
        Column("Ready", "string", f"{_IS_READY}.status", "Whether it fires into a queue."),
        # A document has one of the four: the column shows the one that is there.
        Column(
            "Schedule",
            "string",
            ".spec['schedule','schedules','every','at']",
            "When it fires.",
        ),
        Column("Zone", "string", ".spec.timeZone", "Time zone of the schedule."),
        Column("Suspended", "boolean", ".spec.suspend", "No fires while true."),
        Column("Last", "date", ".status.lastScheduleTime", "Time since the last run was due."),
        Column("Next", "string", ".status.nextScheduleTimes[0]", "The next fire time."),
        Column("Active", "integer", ".status.activeCount", "Runs that have not ended."),
        Column("Last Result", "string", ".status.lastResult", "State of the last run's job."),
        Column("Reason", "string", f"{_IS_READY}.reason", "Why it is ready, or not.", wide=True),
        _AGE,
    ),
)

DEFINITIONS = (TASK_QUEUE, CRON_TASK)
