"""What people see and do of CronTasks, in the memory model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from tidework.broker.answers import SuspendAnswer
from tidework.broker.fires import newest_first
from tidework.clock import from_ms, to_ms
from tidework.model.fire import (
    BackfillAnswer,
    ConcurrencyPolicy,
    Fire,
    FireKind,
    Suspension,
    one_line,
)
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.testing.memory.calls import MemoryCalls
from tidework.testing.memory.state import QueueState

MOST_BACKFILLED = 1000


class MemoryCronActs(MemoryCalls):
    """History, suspension and backfills of CronTasks, of the MemoryBroker."""

    async def fires(self, queue: QueueName, uid: str) -> tuple[Fire, ...]:
        return newest_first(self._open(queue).fires.of.get(uid, []))

    async def suspend_cron(
        self, queue: QueueName, uid: str, *, by: str, reason: str, until: datetime | None = None
    ) -> SuspendAnswer | None:
        state = self._open(queue)
        if uid not in state.crontasks:
            return None
        now = from_ms(state.now)
        ends = None if until is None else from_ms(to_ms(until))
        wanted = Suspension(one_line(by), one_line(reason), now, ends)
        found = state.suspensions.get(uid)
        if found is not None and found.holds(now):
            return SuspendAnswer(found, before=replace(found, since=now) != wanted)
        state.suspensions[uid] = wanted
        return SuspendAnswer(wanted)

    async def resume_cron(self, queue: QueueName, uid: str) -> Suspension | None:
        state = self._open(queue)
        found = state.suspensions.pop(uid, None)
        if found is None:
            return None
        cron = state.crons.get(uid)
        holds = found.holds(from_ms(state.now))
        if cron is not None:
            cron.watermark = max(cron.watermark, state.now // 1000 if holds else last_of(found))
        return found if holds else None

    async def backfill(
        self,
        queue: QueueName,
        uid: str,
        fires: Mapping[int, Job],
        *,
        policy: ConcurrencyPolicy,
        note: str,
    ) -> tuple[BackfillAnswer, ...] | None:
        state = self._open(queue)
        if uid not in state.crons:
            return None
        answers = []
        for fire, job in fires.items():
            answers.append(_backfill(state, uid, fire, job, policy))
            if answers[-1] is BackfillAnswer.ENQUEUED:
                due_ms, now = 1000 * fire, state.now
                state.fires.note_run(uid, job.id, FireKind.BACKFILL, due_ms, now, one_line(note))
        state.wake()
        await self._announce()
        return tuple(answers)


def _backfill(
    state: QueueState, uid: str, fire: int, job: Job, policy: ConcurrencyPolicy
) -> BackfillAnswer:
    if fire > state.crons[uid].watermark:
        return BackfillAnswer.UNDECIDED
    done = state.backfilled.setdefault(uid, [])
    if fire in done or state.is_known(job.id) or state.fires.has_run(uid, job.id):
        state.counters["known"] += 1
        return BackfillAnswer.KNOWN
    if policy is not ConcurrencyPolicy.ALLOW and state.active_runs(uid):
        return BackfillAnswer.BUSY
    now_due = job._replace(delay=None, available_at=None)
    state.insert(now_due, job.encode(), cron=uid)
    state.backfilled[uid] = [*done, fire][-MOST_BACKFILLED:]
    return BackfillAnswer.ENQUEUED


def last_of(suspension: Suspension) -> int:
    """The last second that lies within one that is over."""
    assert suspension.until is not None
    return -(-to_ms(suspension.until) // 1000) - 1
