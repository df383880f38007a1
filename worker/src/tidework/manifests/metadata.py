"""The head of every document: version, names, and what Kubernetes adds to them."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from pydantic import AwareDatetime, ConfigDict, Field

from tidework.manifests.part import DnsLabel, Part, checked
from tidework.model.identity import is_job_id

API_VERSION = "tidework.dev/v1alpha1"

# Fires take their job ids from it.
Uid = Annotated[str, checked(is_job_id, "use the uid that Kubernetes gave, or remove it")]

_UID_SPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "tidework.dev")


class Metadata(Part):
    """The fields of Kubernetes' ObjectMeta that Tidework reads; the others are let through."""

    model_config = ConfigDict(extra="ignore")

    name: DnsLabel = Field(description="Name, unique within the namespace and the kind.")
    namespace: DnsLabel = Field(description="Namespace; queues and CronTasks meet within one.")
    uid: Uid = Field(
        default="",
        max_length=64,
        description="Set by Kubernetes. A document from a file gets one from its names.",
    )
    labels: dict[str, str] = Field(default={}, description="Labels; Tidework reads none.")
    annotations: dict[str, str] = Field(default={}, description="Annotations.")
    creation_timestamp: AwareDatetime | None = Field(
        default=None, description="Set by Kubernetes: no fire is due before it."
    )


class Document(Part):
    """What TaskQueue and CronTask have in common."""

    metadata: Metadata = Field(description="Name, namespace and what Kubernetes adds.")
    status: Any = Field(default=None, description="Written by the operator; ignored when read.")


def stable_uid(kind: str, namespace: str, name: str) -> str:
    """The uid of a document without one: the same names give the same uid, everywhere."""
    return str(uuid.uuid5(_UID_SPACE, f"{namespace}/{kind}/{name}"))
