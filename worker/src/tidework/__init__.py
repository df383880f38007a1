"""Tidework: workers that rise and fall with the backlog.

The public API; everything else is internal and may change.
"""

from __future__ import annotations

from tidework.app import JobHandle, Task, Tidework
from tidework.client import Client
from tidework.model.backlog import JobRecord, QueueStats
from tidework.model.current import CurrentJob, current_job
from tidework.model.endings import Bury, Retry
from tidework.model.job import JobState
from tidework.settings import Settings

__all__ = [
    "Bury",
    "Client",
    "CurrentJob",
    "JobHandle",
    "JobRecord",
    "JobState",
    "QueueStats",
    "Retry",
    "Settings",
    "Task",
    "Tidework",
    "current_job",
]
