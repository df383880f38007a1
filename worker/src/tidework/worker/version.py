"""The version of the distribution, for people and for rolling upgrades."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """The version of the installed ``tidework``; ``0`` when it runs from a bare source tree."""
    try:
        return metadata.version("tidework")
    except metadata.PackageNotFoundError:
        return "0"
