"""Moments on the wire: RFC 3339 in UTC, with milliseconds and Z."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, PlainSerializer


def moment_text(moment: datetime) -> str:
    """The moment as the API writes it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Moment = Annotated[AwareDatetime, PlainSerializer(moment_text, return_type=str)]
"""A moment; one without an offset is refused where it comes in."""
