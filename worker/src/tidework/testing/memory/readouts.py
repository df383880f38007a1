"""What the memory model tells. Nothing is changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tidework.clock import from_ms, to_ms
from tidework.model.backlog import (
    EVERY_JOB,
    SHOWN_BYTES,
    ErrorGroup,
    FoundJob,
    JobFilter,
    JobPage,
    JobRecord,
    QueueLoad,
    QueueStats,
)
from tidework.model.fire import CronRecord
from tidework.model.identity import QueueName
from tidework.model.job import FINISHED_STATES, JobState
from tidework.model.lease import TOMBSTONE_MS
from tidework.testing.memory.calls import MemoryCalls
from tidework.testing.memory.entry import HELD, Entry, read_record


class MemoryReadouts(MemoryCalls):
    """The read-outs of the MemoryBroker."""

    async def get_job(self, queue: QueueName, job_id: str) -> JobRecord | None:
        entry = self._open(queue).entries.get(job_id)
        return None if entry is None else read_record(entry)

    async def forgotten_at(self, queue: QueueName, job_id: str) -> datetime | None:
        store = self._open(queue)
        until = None if job_id in store.entries else store.tombstones.get(job_id)
        return None if until is None else from_ms(until - TOMBSTONE_MS)

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
        found = [entry for entry in self._open(queue).in_state(state) if _is_within(entry, within)]
        if cursor is not None:
            score, _, job_id = cursor.partition(":")
            last = (int(score), job_id)
            newest_first = state in FINISHED_STATES
            found = [e for e in found if (e.place < last if newest_first else e.place > last)]
        page = found[:limit]
        more = len(found) > limit
        further = f"{page[-1].place[0]}:{page[-1].id}" if more else None
        return JobPage(tuple(entry.id for entry in page), further)

    async def get_jobs(
        self, queue: QueueName, job_ids: Sequence[str], *, text: str = ""
    ) -> tuple[FoundJob, ...]:
        entries = self._open(queue).entries
        found = [entries[job_id] for job_id in job_ids if job_id in entries]
        return tuple(
            FoundJob(_shortened(read_record(entry)), len(entry.body) > SHOWN_BYTES)
            for entry in found
            if _holds(entry, text)
        )

    async def ahead_of(self, queue: QueueName, job_id: str) -> int | None:
        ready = [entry.id for entry in self._open(queue).in_state(JobState.READY)]
        return ready.index(job_id) if job_id in ready else None

    async def list_errors(self, queue: QueueName, *, limit: int = 20) -> tuple[ErrorGroup, ...]:
        groups: dict[str, list[Entry]] = {}
        for entry in self._open(queue).in_state(JobState.DEAD):  # the newest first
            error = entry.error
            groups.setdefault(error.fingerprint if error else "", []).append(entry)
        found = [
            ErrorGroup(
                fingerprint=name,
                count=len(entries),
                first_at=from_ms(entries[-1].changed_ms),
                last_at=from_ms(entries[0].changed_ms),
                example=entries[0].id,
                error=entries[0].error,
            )
            for name, entries in groups.items()
        ]
        found.sort(key=lambda group: (group.count, group.fingerprint), reverse=True)
        return tuple(found[:limit])

    async def stats(self, queue: QueueName) -> QueueStats:
        state = self._open(queue)
        states = {name: len(state.in_state(name)) for name in JobState}
        counters = {name: count for name, count in state.counters.items() if count}
        return QueueStats(states, state.documents(), state.oldest_age(), counters, state.pause)

    async def gather(self, queue: QueueName, *, horizon: timedelta) -> QueueLoad:
        state = self._open(queue)
        now, until = state.now, state.now + horizon // timedelta(milliseconds=1)
        scheduled = [e for e in state.in_state(JobState.SCHEDULED) if not e.held]
        waiting = [*scheduled, *state.in_state(JobState.READY)]
        # When a job asks for a worker: of an unknown task not before its wait is over.
        asks = [
            e.unknown_until_ms or (e.available_ms if e.state is JobState.SCHEDULED else now)
            for e in waiting
        ]
        unknown = [e for e in waiting if e.unknown_until_ms > now]
        longest = max(unknown, key=lambda e: (e.unknown_until_ms, e.id), default=None)
        busy = Counter(e.worker for e in state.in_state(JobState.RUNNING))
        return QueueLoad(
            backlog=state.documents() + sum(at <= now for at in asks),
            due_soon=sum(now < at <= until for at in asks),
            in_flight=sum(busy.values()),
            busy_workers=dict(busy),
            oldest_age=state.oldest_age(),
            next_due=min((e.available_ms for e in scheduled), default=None),
            enqueued=state.counters["enqueued"],
            service_time=dict(state.service_time),
            now_ms=now,
            paused=state.pause is not None,
            unknown=len(unknown),
            unknown_task="" if longest is None else longest.task,
            announced=state.announced,
        )

    async def crontasks(self, queue: QueueName) -> Mapping[str, Any]:
        return {uid: json.loads(raw) for uid, raw in sorted(self._open(queue).crontasks.items())}

    async def cron_record(self, queue: QueueName, uid: str) -> CronRecord | None:
        state = self._open(queue)
        cron = state.crons.get(uid)
        return None if cron is None else state.cron_record(cron)


def _is_within(entry: Entry, within: JobFilter) -> bool:
    at = entry.available_ms if entry.state is JobState.SCHEDULED else entry.changed_ms
    if entry.held:  # it is due after all others
        at = HELD
    error = entry.error
    return (
        (not within.task or entry.task == within.task)
        and (not within.error or (error is not None and error.fingerprint == within.error))
        and (within.since is None or at >= to_ms(within.since))
        and (within.until is None or at <= to_ms(within.until))
    )


def _holds(entry: Entry, text: str) -> bool:
    needles = [text.encode(), json.dumps(text)[1:-1].encode()]
    places = [entry.id.encode(), entry.task.encode(), entry.body, entry.detail]
    return any(needle in place for needle in needles for place in places)


def _shortened(record: JobRecord) -> JobRecord:
    return replace(record, body=record.body[:SHOWN_BYTES])
