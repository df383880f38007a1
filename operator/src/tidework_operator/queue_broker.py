"""One broker over all Redis connections: each call goes to the connection of its queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from tidework.broker.answers import CordonAnswer, UncordonAnswer, UpkeepReply
from tidework.broker.broker import Broker, Leader
from tidework.broker.documents import AcceptedDocument, RejectedDocument
from tidework.errors import BrokerRefusedError, ConfigurationError
from tidework.model.backlog import JobRecord, Presence, QueueLoad, QueueStats, StacksAnswer
from tidework.model.durability import Durability
from tidework.model.fire import CronRecord, FireAnswer, FireRequest, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import CordonedWorker
from tidework.model.scaled import Scaled, ScalingRecord
from tidework_operator.connections import Connections


class QueueBroker(Leader):
    """The roles of the operator.

    connection_of: the name of a queue's connection

    A connection that is not configured is trouble of its queues alone: BrokerRefusedError.
    """

    def __init__(self, connections: Connections, connection_of: Callable[[QueueName], str]) -> None:
        self._connections = connections
        self._connection_of = connection_of

    def _of(self, queue: QueueName) -> Broker:
        try:
            return self._connections.broker(self._connection_of(queue))
        except ConfigurationError as error:
            raise BrokerRefusedError(str(error)) from error

    async def close(self) -> None:
        await self._connections.close()

    async def open_queue(self, queue: QueueName) -> None:
        await self._of(queue).open_queue(queue)

    async def get_job(self, queue: QueueName, job_id: str) -> JobRecord | None:
        return await self._of(queue).get_job(queue, job_id)

    async def stats(self, queue: QueueName) -> QueueStats:
        return await self._of(queue).stats(queue)

    # Documents

    async def intake(
        self,
        queue: QueueName,
        accepted: Sequence[AcceptedDocument],
        rejected: Sequence[RejectedDocument],
        *,
        more: int = 0,
        full: bool = False,
    ) -> tuple[bytes, ...]:
        return await self._of(queue).intake(queue, accepted, rejected, more=more, full=full)

    async def stranded(self, queue: QueueName, limit: int, skip: int = 0) -> tuple[bytes, ...]:
        return await self._of(queue).stranded(queue, limit, skip)

    # Fleet

    async def gather(self, queue: QueueName, *, horizon: timedelta) -> QueueLoad:
        return await self._of(queue).gather(queue, horizon=horizon)

    async def scaling(self, queue: QueueName) -> ScalingRecord:
        return await self._of(queue).scaling(queue)

    async def workers(self, queue: QueueName) -> tuple[Presence, ...]:
        return await self._of(queue).workers(queue)

    async def cordon(self, queue: QueueName, incarnation: str) -> CordonAnswer | None:
        return await self._of(queue).cordon(queue, incarnation)

    async def uncordon(self, queue: QueueName, incarnation: str) -> UncordonAnswer:
        return await self._of(queue).uncordon(queue, incarnation)

    async def ask_stacks(self, queue: QueueName, incarnation: str) -> int | None:
        return await self._of(queue).ask_stacks(queue, incarnation)

    async def stacks(self, queue: QueueName, incarnation: str) -> StacksAnswer | None:
        return await self._of(queue).stacks(queue, incarnation)

    async def drain(
        self, queue: QueueName, term: int, candidates: Sequence[str], count: int, *, ttl: timedelta
    ) -> tuple[CordonedWorker, ...]:
        return await self._of(queue).drain(queue, term, candidates, count, ttl=ttl)

    # Leadership

    async def take_term(self, queue: QueueName) -> int:
        return await self._of(queue).take_term(queue)

    async def lead(self, queue: QueueName, holder: str, ttl: timedelta) -> int | None:
        return await self._of(queue).lead(queue, holder, ttl)

    async def resign(self, queue: QueueName, holder: str) -> None:
        return await self._of(queue).resign(queue, holder)

    async def note_scaling(
        self, queue: QueueName, term: int, scaled: Scaled, *, is_step: bool
    ) -> None:
        await self._of(queue).note_scaling(queue, term, scaled, is_step=is_step)

    async def configure(self, queue: QueueName, term: int, durability: Durability) -> None:
        return await self._of(queue).configure(queue, term, durability)

    async def upkeep(self, queue: QueueName) -> UpkeepReply:
        return await self._of(queue).upkeep(queue)

    # Schedules

    async def admit_cron(
        self, queue: QueueName, term: int, uid: str, fingerprint: str, start: int, *, reset: bool
    ) -> CronRecord:
        return await self._of(queue).admit_cron(queue, term, uid, fingerprint, start, reset=reset)

    async def decide_fires(
        self, queue: QueueName, term: int, requests: Sequence[FireRequest]
    ) -> tuple[Verdict | FireAnswer, ...]:
        return await self._of(queue).decide_fires(queue, term, requests)

    async def run_now(
        self,
        queue: QueueName,
        term: int | None,
        uid: str,
        nonce: str,
        job: Job,
        *,
        note: str = "",
    ) -> bool:
        return await self._of(queue).run_now(queue, term, uid, nonce, job, note=note)

    async def put_crontasks(
        self, queue: QueueName, term: int, documents: Mapping[str, bytes]
    ) -> None:
        return await self._of(queue).put_crontasks(queue, term, documents)

    async def crontasks(self, queue: QueueName) -> Mapping[str, Any]:
        return await self._of(queue).crontasks(queue)

    async def cron_record(self, queue: QueueName, uid: str) -> CronRecord | None:
        return await self._of(queue).cron_record(queue, uid)
