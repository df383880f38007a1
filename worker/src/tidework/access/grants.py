"""What people may do whom somebody else has identified: a proxy, or a provider of OpenID Connect.

Names and groups are compared as they are: no patterns, no case, so nobody fits by accident. Of the
grants that fit the greatest permission counts, in the namespaces of all grants of that permission.
Who fits none is known, and may do nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tidework.access.caller import Caller, Permission
from tidework.model.identity import is_dns_label


class Grant(BaseModel):
    """Of an access file: a user or a group, and what they may do where."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: str | None = Field(default=None, min_length=1)
    group: str | None = Field(default=None, min_length=1)
    permission: Literal["viewer", "operator", "admin"]
    namespaces: frozenset[str] | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.user is None) == (self.group is None):
            raise ValueError("give user or group, one of them")
        return self

    @field_validator("namespaces")
    @classmethod
    def _are_names(cls, found: frozenset[str] | None) -> frozenset[str] | None:
        for name in found or ():
            if not is_dns_label(name):
                raise ValueError(f"{name!r} is not the name of a namespace")
        return found

    def fits(self, name: str, groups: Collection[str]) -> bool:
        """Is it for this person?"""
        return self.user == name if self.user is not None else self.group in groups


def caller_of(name: str, groups: Collection[str], via: str, grants: Sequence[Grant]) -> Caller:
    """The person with what the grants give."""
    fitting = [grant for grant in grants if grant.fits(name, groups)]
    if not fitting:
        return Caller(name, Permission.VIEWER, frozenset(), via)
    greatest = max(Permission[grant.permission.upper()] for grant in fitting)
    wheres = [
        grant.namespaces for grant in fitting if Permission[grant.permission.upper()] is greatest
    ]
    if any(where is None for where in wheres):
        return Caller(name, greatest, None, via)
    return Caller(name, greatest, frozenset().union(*[where or () for where in wheres]), via)
