"""What people see and do of CronTasks, in the memory model."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tidework.broker.answers import SuspendAnswer
from tidework.broker.fires import newest_first
from tidework.clock import from_ms, to_ms
from tidework.model.fire import Fire, Suspension, one_line
from tidework.model.identity import QueueName
from tidework.testing.memory.calls import MemoryCalls


class MemoryCronActs(MemoryCalls):
    """The history of CronTasks, and their suspension, of the MemoryBroker."""

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


def last_of(suspension: Suspension) -> int:
    """The last second that lies within one that is over."""
    assert suspension.until is not None
    return -(-to_ms(suspension.until) // 1000) - 1
