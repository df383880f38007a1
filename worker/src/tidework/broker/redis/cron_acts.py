"""What people see and do of CronTasks through the Broker on Redis."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from tidework.broker.answers import SuspendAnswer
from tidework.broker.fires import read_fires
from tidework.broker.keys import queue_key
from tidework.broker.redis.calls import RedisCalls
from tidework.broker.redis.replies import read_suspension, reading
from tidework.broker.redis.stored import stored_body
from tidework.broker.scripts import Value
from tidework.clock import to_ms
from tidework.model.fire import BackfillAnswer, ConcurrencyPolicy, Fire, Suspension, one_line
from tidework.model.identity import QueueName
from tidework.model.job import Job


class RedisCronActs(RedisCalls):
    """History, suspension and backfills of CronTasks, of the RedisBroker."""

    async def fires(self, queue: QueueName, uid: str) -> tuple[Fire, ...]:
        found = await self.transport.command("HGET", queue_key(queue, "fires"), uid)
        with reading(f"the history of CronTask {uid}", queue):
            return () if found is None else read_fires(uid, found.decode())

    async def suspend_cron(
        self, queue: QueueName, uid: str, *, by: str, reason: str, until: datetime | None = None
    ) -> SuspendAnswer | None:
        found = await self._write(
            "suspend_cron",
            queue,
            uid=uid,
            until_ms=0 if until is None else to_ms(until),
            by=one_line(by),
            reason=one_line(reason),
        )
        if found is None:
            return None
        is_ours, text = found
        return SuspendAnswer(read_suspension(text.decode()), before=not is_ours)

    async def resume_cron(self, queue: QueueName, uid: str) -> Suspension | None:
        found = await self._write("resume_cron", queue, uid=uid)
        return None if found is None else read_suspension(found.decode())

    async def backfill(
        self,
        queue: QueueName,
        uid: str,
        fires: Mapping[int, Job],
        *,
        policy: ConcurrencyPolicy,
        note: str,
    ) -> tuple[BackfillAnswer, ...] | None:
        rest: list[Value] = []
        for fire, job in fires.items():
            rest += (fire, job.id, stored_body(job.task, job.id, job.encode()), job.priority)
        found = await self._write(
            "backfill", queue, rest, uid=uid, policy=policy.value, note=one_line(note)
        )
        return None if found is None else tuple(BackfillAnswer(raw.decode()) for raw in found)
