"""What the Broker on Redis tells: jobs, lengths, loads, workers, CronTasks. Nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tidework.broker.keys import queue_key
from tidework.broker.redis.calls import RedisCalls
from tidework.broker.redis.replies import (
    read_cron,
    read_errors,
    read_found_job,
    read_job,
    read_load,
    read_stacks,
    read_stats,
    read_workers,
    reading,
)
from tidework.clock import from_ms, to_ms
from tidework.model.backlog import (
    EVERY_JOB,
    SHOWN_BYTES,
    ErrorGroup,
    FoundJob,
    JobFilter,
    JobPage,
    JobRecord,
    Presence,
    QueueLoad,
    QueueStats,
    StacksAnswer,
)
from tidework.model.fire import CronRecord
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.model.lease import TOMBSTONE_MS
from tidework.model.scaled import ScalingRecord, read_scaled

_MS = timedelta(milliseconds=1)


class RedisReadouts(RedisCalls):
    """The read-outs of the RedisBroker."""

    async def get_job(self, queue: QueueName, job_id: str) -> JobRecord | None:
        found = await self._run("get_job", queue, id=job_id)
        with reading(f"job {job_id}", queue):
            return read_job(job_id, found) if isinstance(found, list) else None

    async def forgotten_at(self, queue: QueueName, job_id: str) -> datetime | None:
        found = await self._run("get_job", queue, id=job_id)
        return from_ms(found - TOMBSTONE_MS) if isinstance(found, int) else None

    async def list_jobs(
        self,
        queue: QueueName,
        state: JobState,
        within: JobFilter = EVERY_JOB,
        *,
        cursor: str | None = None,
        limit: int = 100,
    ) -> JobPage:
        within.check(state, cursor)
        ids: list[str] = []
        further = cursor or ""
        while True:
            found = await self._run(
                "list_jobs",
                queue,
                state=state.value,
                entry=_index_entry(state, within),
                task=within.task,
                since="" if within.since is None else to_ms(within.since),
                until_ms="" if within.until is None else to_ms(within.until),
                cursor=further,
                limit=limit - len(ids),
            )
            further, *some = (raw.decode() for raw in found)
            ids += some
            if not further or len(ids) >= limit:
                return JobPage(tuple(ids), further or None)

    async def get_jobs(
        self, queue: QueueName, job_ids: Sequence[str], *, text: str = ""
    ) -> tuple[FoundJob, ...]:
        if not job_ids:
            return ()
        found = await self._run(
            "get_jobs",
            queue,
            job_ids,
            most_bytes=SHOWN_BYTES,
            text=text,
            escaped=json.dumps(text)[1:-1],
        )
        with reading("jobs", queue):
            pairs = zip(job_ids, found, strict=True)
            return tuple(read_found_job(job_id, parts) for job_id, parts in pairs if parts)

    async def ahead_of(self, queue: QueueName, job_id: str) -> int | None:
        found: int | None = await self.transport.command("ZRANK", queue_key(queue, "ready"), job_id)
        return found

    async def list_errors(self, queue: QueueName, *, limit: int = 20) -> tuple[ErrorGroup, ...]:
        found = await self._run("list_errors", queue, limit=limit)
        with reading("the errors", queue):
            return read_errors(found)

    async def stats(self, queue: QueueName) -> QueueStats:
        found = await self._run("stats", queue)
        with reading("the counters", queue):
            return read_stats(found)

    async def workers(self, queue: QueueName) -> tuple[Presence, ...]:
        found = await self._run("workers", queue)
        with reading("the presence of workers", queue):
            presences = read_workers(found)
        return tuple(sorted(presences, key=lambda presence: presence.incarnation))

    async def tasks(self, queue: QueueName) -> tuple[str, ...]:
        found = await self.transport.command("ZRANGE", queue_key(queue, "tasks"), 0, -1)
        return tuple(sorted(raw.decode(errors="replace") for raw in found))

    async def stacks(self, queue: QueueName, incarnation: str) -> StacksAnswer | None:
        found = await self.transport.command("HGET", queue_key(queue, "stacks"), incarnation)
        with reading(f"the stacks of worker {incarnation}", queue):
            return None if found is None else read_stacks(found)

    async def scaling(self, queue: QueueName) -> ScalingRecord:
        latest = await self.transport.command("GET", queue_key(queue, "scaling"))
        steps = await self.transport.command("LRANGE", queue_key(queue, "decisions"), 0, -1)
        with reading("the decisions of the autoscaler", queue):
            return ScalingRecord(
                latest and read_scaled(latest.decode()),
                tuple(read_scaled(entry.decode()) for entry in steps),
            )

    async def gather(self, queue: QueueName, *, horizon: timedelta) -> QueueLoad:
        found = await self._run("gather", queue, horizon_ms=horizon // _MS)
        with reading("the load", queue):
            return read_load(found)

    async def crontasks(self, queue: QueueName) -> Mapping[str, Any]:
        found = await self.transport.command("HGETALL", queue_key(queue, "crontasks"))
        with reading("the mirror of CronTasks", queue):
            return {uid.decode(): json.loads(raw) for uid, raw in sorted(found.items())}

    async def cron_record(self, queue: QueueName, uid: str) -> CronRecord | None:
        found = await self._run("cron_record", queue, uid=uid)
        with reading(f"the record of CronTask {uid}", queue):
            return None if found is None else read_cron(uid, found)


def _index_entry(state: JobState, within: JobFilter) -> str:
    """See list_jobs.lua. '|' ends a name in the index, and no name has one."""
    if within.error:
        return f"error:{within.error.replace('|', '')}|"
    if within.task and state is not JobState.SUCCEEDED:
        return f"task:{within.task.replace('|', '')}|{state.value[0].upper()}|"
    return ""
