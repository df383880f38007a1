"""Waiting for the cluster: conditions are looked at until they hold, and never slept for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tests.e2e.rig.commands import CommandError
from tests.support import waiting

Value = TypeVar("Value")
PERIOD = 0.5


def wait_until(condition: Callable[[], Value], *, within: float, describe: str) -> Value:
    """Look twice a second until the condition is true, and return what it returned.

    A condition that raises CommandError or AssertionError does not hold yet (an object that is not
    there so far). After `within` seconds: AssertionError with `describe` and what was seen last;
    the report of the failed test then shows the cluster (see dump.py).
    """
    return waiting.wait_until(
        condition, describe, within, errors=(CommandError, AssertionError), pause=PERIOD
    )
