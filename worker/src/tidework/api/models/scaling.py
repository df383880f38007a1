"""Decisions of the autoscaler, with their reasons in words."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tidework.api.models.moments import Moment
from tidework.model.scaled import DatedScaled


class ScaledModel(BaseModel):
    """One decision."""

    at: Moment
    before: int = Field(description="Replicas that were asked for until then.")
    replicas: int = Field(description="Replicas that are asked for from then on.")
    wanted: int = Field(description="What the load asks for, within minReplicas and maxReplicas.")
    reason: str
    limits: list[str] = Field(description="What makes the replicas differ from what is wanted.")
    backlog: int | None
    running: int | None


class ScalingModel(BaseModel):
    """latest: null if no autoscaler has told of the queue; steps: newest first"""

    queue: str
    latest: ScaledModel | None
    steps: list[ScaledModel] = Field(
        description="The last 100 decisions that changed the replicas or what limits them."
    )


def scaled_model(found: DatedScaled) -> ScaledModel:
    """The model of one decision."""
    scaled = found.scaled
    return ScaledModel(
        at=found.at,
        before=scaled.before,
        replicas=scaled.replicas,
        wanted=scaled.wanted,
        reason=scaled.reason,
        limits=list(scaled.limits),
        backlog=scaled.backlog,
        running=scaled.running,
    )
