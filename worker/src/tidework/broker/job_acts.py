"""The Broker's role for what people see and do of single jobs.

As in broker.py each method is one atomic step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tidework.broker.answers import DeleteAnswer, PromoteAnswer
from tidework.model.backlog import FoundJob
from tidework.model.identity import QueueName


class JobActs(Protocol):
    """What people see and do of single jobs."""

    async def get_jobs(
        self, queue: QueueName, job_ids: Sequence[str], *, text: str = ""
    ) -> tuple[FoundJob, ...]:
        """Of these jobs those that are known and hold a text in their id, envelope or error, in
        the order of the ids. Of a long envelope there is the beginning."""

    async def ahead_of(self, queue: QueueName, job_id: str) -> int | None:
        """How many ready jobs are more urgent than a ready one, None if it is not ready. Every
        tenth claim takes the oldest job, so that the line is not strict."""

    async def promote(self, queue: QueueName, job_id: str) -> PromoteAnswer:
        """Make a scheduled job ready at once, whatever it was to wait for."""

    async def delete(self, queue: QueueName, job_id: str) -> DeleteAnswer:
        """Delete a job that does not run: ended, or cancelled by this."""
