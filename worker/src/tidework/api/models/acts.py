"""What people did, as the record tells it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tidework.api.models.moments import Moment
from tidework.broker.acts import Act


class ActModel(BaseModel):
    """One act."""

    number: int = Field(description="Counts the acts of the namespace, from 1.")
    at: Moment
    by: str = Field(description="Name of the caller.")
    via: str = Field(description="How the caller proved who it is.")
    permission: str
    act: str = Field(description="The operation, by its operationId.")
    target: str = Field(description="The path that it was for.")
    reason: str = Field(description="In the caller's own words; empty without any.")
    status: int = Field(description="HTTP status of the answer: below 400 it was done.")


def act_model(number: int, act: Act) -> ActModel:
    """The model of one act."""
    return ActModel(
        number=number,
        at=act.at,
        by=act.by,
        via=act.via,
        permission=act.permission,
        act=act.name,
        target=act.target,
        reason=act.reason,
        status=act.status,
    )
