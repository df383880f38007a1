"""The Broker's role for what people see and do of CronTasks beside their documents.

As in broker.py each method is one atomic step.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from tidework.broker.answers import SuspendAnswer
from tidework.model.fire import BackfillAnswer, ConcurrencyPolicy, Fire, Suspension
from tidework.model.identity import QueueName
from tidework.model.job import Job


class CronActs(Protocol):
    """What people see and do of CronTasks beside their documents."""

    async def fires(self, queue: QueueName, uid: str) -> tuple[Fire, ...]:
        """The history of one CronTask, the newest first: its last fires and runs, MOST_FIRES at
        most. Entries are written in the step of the verdict, completed in that of the run's end,
        and outlive their jobs; they go when ``put_crontasks`` forgets the record.
        """

    async def suspend_cron(
        self, queue: QueueName, uid: str, *, by: str, reason: str, until: datetime | None = None
    ) -> SuspendAnswer | None:
        """Have a CronTask rest until ``resume_cron``, or ``until``; None if it is not mirrored.

        It is kept with the record, whatever becomes of the document: its fires get no verdict, and
        what fell due meanwhile does not fire later. One that holds already stays as it is.
        """

    async def resume_cron(self, queue: QueueName, uid: str) -> Suspension | None:
        """End a person's suspension, which is returned; None if none holds."""

    async def backfill(
        self,
        queue: QueueName,
        uid: str,
        fires: Mapping[int, Job],
        *,
        policy: ConcurrencyPolicy,
        note: str,
    ) -> tuple[BackfillAnswer, ...] | None:
        """Enqueue runs of past instants (Unix seconds), each at most once; None if there is no
        record. All in one step: not more than some dozens. The watermark stays as it is, and so do
        the numbers of verdicts. Raises BrokerFullError.
        """
