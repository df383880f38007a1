"""Tidework: workers that rise and fall with the backlog.

The public API; everything else is internal and may change.
"""

from __future__ import annotations

from tidework.app import AsyncTask, Task, Tidework
from tidework.client import Client
from tidework.errors import (
    CancelRequested,
    CheckpointError,
    LeaseLostError,
    ResultError,
    ResultExpiredError,
    SoftTimeout,
)
from tidework.job_handle import JobHandle
from tidework.long_jobs import checkpoint, progress
from tidework.model.backlog import ErrorGroup, JobFilter, JobRecord, QueueStats
from tidework.model.current import CurrentJob, current_job
from tidework.model.endings import Bury, Retry
from tidework.model.job import JobState
from tidework.model.unique import OnConflict, Unique, UniqueUntil
from tidework.model.values.secrets import StoredSecret
from tidework.once_per_key import once
from tidework.settings import Settings

__all__ = [
    "AsyncTask",
    "Bury",
    "CancelRequested",
    "CheckpointError",
    "Client",
    "CurrentJob",
    "ErrorGroup",
    "JobFilter",
    "JobHandle",
    "JobRecord",
    "JobState",
    "LeaseLostError",
    "OnConflict",
    "QueueStats",
    "ResultError",
    "ResultExpiredError",
    "Retry",
    "Settings",
    "SoftTimeout",
    "StoredSecret",
    "Task",
    "Tidework",
    "Unique",
    "UniqueUntil",
    "checkpoint",
    "current_job",
    "once",
    "progress",
]
