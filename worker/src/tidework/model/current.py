"""The job that runs in this context, for its own code to look at."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime

from tidework.errors import ConfigurationError
from tidework.model.lease import Lease


@dataclass(frozen=True, slots=True)
class CurrentJob:
    """deadline: when the hard timeout strikes, aware UTC. lease: what proves that it is ours."""

    id: str
    task: str
    queue: str
    namespace: str
    attempt: int
    max_attempts: int
    deadline: datetime
    lease: Lease | None = field(default=None, repr=False)


running_job: ContextVar[CurrentJob | Callable[[], CurrentJob] | None] = ContextVar(
    "running_job", default=None
)
"""Or what describes it when asked: most jobs never ask."""


def current_job() -> CurrentJob:
    """The running job. Raises ConfigurationError outside of one."""
    found = running_job.get()
    if found is None:
        raise ConfigurationError("current_job() was called outside of a job")
    return found if isinstance(found, CurrentJob) else found()
