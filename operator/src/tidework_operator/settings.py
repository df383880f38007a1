"""Settings of the operator: the variables of workers and scheduler, so that all share a Redis."""

from __future__ import annotations

from tidework.settings import Settings


class OperatorSettings(Settings):
    """Read from TIDEWORK_* variables; the operator's own join with the code that uses them."""
