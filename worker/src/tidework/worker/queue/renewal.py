"""Renewal: every third of a lease, the leases of all held jobs are extended.

Whether a job waits, runs, or has ended and is not settled yet: until Redis confirms its end it is
ours. Renewal never waits for an exchange. It also brings back what was lost or cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from tidework.backoff import Backoff
from tidework.broker.broker import Claims
from tidework.errors import BrokerError
from tidework.loop import Loop
from tidework.worker.queue.consumer import Consumer
from tidework.worker.queue.job_log import JobLog


class Renewal:
    """Renews the leases of some consumers of one worker."""

    def __init__(
        self,
        broker: Claims,
        incarnation: str,
        consumers: Sequence[tuple[Consumer, JobLog]],
        lease: timedelta,
    ) -> None:
        self._broker = broker
        self._incarnation = incarnation
        self._consumers = consumers
        self._every = lease / 3
        # Soon again: there are two thirds of a lease left.
        self._backoff = Backoff(most=min(timedelta(seconds=1), lease / 6))
        self.loop = Loop("renewal", self._tick)

    async def _tick(self) -> timedelta:
        # Each on its own: trouble with one queue must not cost the leases of the others.
        async with asyncio.TaskGroup() as group:
            renewing = [
                group.create_task(self._renew(consumer, job_log))
                for consumer, job_log in self._consumers
                if consumer.held
            ]
        if not all(task.result() for task in renewing):
            return self._backoff.next()
        self._backoff.reset()
        return self._every

    async def _renew(self, consumer: Consumer, job_log: JobLog) -> bool:
        leases = consumer.leases()
        if not leases:
            return True
        try:
            reply = await self._broker.renew(consumer.queue, self._incarnation, leases)
        except BrokerError as error:
            job_log.note_redis_error(error, "renewal of leases")
            return False
        consumer.on_renewed(reply, leases)
        return True
