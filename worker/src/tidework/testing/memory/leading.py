"""What leaders write: every call carries its term."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from tidework.clock import from_ms
from tidework.errors import StaleTermError
from tidework.model.durability import Durability
from tidework.model.fire import (
    CronRecord,
    FireAnswer,
    FireKind,
    FireRequest,
    Verdict,
    one_line,
)
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import (
    CordonedWorker,
)
from tidework.model.scaled import MOST_KEPT, DatedScaled, Scaled, ScalingRecord
from tidework.testing.memory.calls import MemoryCalls
from tidework.testing.memory.deciding import decide_fire
from tidework.testing.memory.state import QueueState

_MS = timedelta(milliseconds=1)


class MemoryLeading(MemoryCalls):
    """The fenced writes of the MemoryBroker."""

    async def drain(
        self, queue: QueueName, term: int, candidates: Sequence[str], count: int, *, ttl: timedelta
    ) -> tuple[CordonedWorker, ...]:
        state = self._fence(queue, term)
        busy = Counter(e.worker for e in state.in_state(JobState.RUNNING))
        ranked = state.cordons.rank(candidates, busy, state.now)
        until = state.now + ttl // timedelta(milliseconds=1)
        state.cordons.note_autoscaler(ranked[:count], until, state.now)
        state.wake()
        await self._announce()
        return tuple(CordonedWorker(worker, busy[worker]) for worker in ranked[:count])

    async def configure(self, queue: QueueName, term: int, durability: Durability) -> None:
        self._fence(queue, term).durability = durability

    async def note_scaling(
        self, queue: QueueName, term: int, scaled: Scaled, *, is_step: bool
    ) -> None:
        state = self._fence(queue, term)
        if state.scaling.latest is not None and state.scaling.latest.scaled == scaled:
            return
        latest = DatedScaled(from_ms(state.now), scaled)
        steps = (latest, *state.scaling.steps) if is_step else state.scaling.steps
        state.scaling = ScalingRecord(latest, steps[:MOST_KEPT])

    async def scaling(self, queue: QueueName) -> ScalingRecord:
        return self._open(queue).scaling

    async def take_term(self, queue: QueueName) -> int:
        state = self._open(queue)
        state.term += 1
        return state.term

    async def lead(self, queue: QueueName, holder: str, ttl: timedelta) -> int | None:
        state = self._open(queue)
        held_by, term, until = state.leader
        until = min(until, state.now + 2 * (ttl // _MS))
        state.leader = (held_by, term, until)
        if held_by and until > state.now:
            if (held_by, term) != (holder, state.term):
                return None
        else:
            state.term += 1
        state.leader = (holder, state.term, state.now + ttl // _MS)
        return state.term

    async def resign(self, queue: QueueName, holder: str) -> None:
        state = self._open(queue)
        if state.leader[0] == holder:
            state.leader = ("", 0, 0)

    def _fence(self, queue: QueueName, term: int) -> QueueState:
        state = self._open(queue)
        if term < state.term:
            state.counters["stale_terms"] += 1
            raise StaleTermError(str(queue), term, state.term)
        state.term = term
        return state

    async def admit_cron(
        self, queue: QueueName, term: int, uid: str, fingerprint: str, start: int, *, reset: bool
    ) -> CronRecord:
        state = self._fence(queue, term)
        cron = state.crons.get(uid)
        if cron is None:
            cron = state.crons[uid] = state.new_cron(uid, fingerprint, start)
        elif reset or cron.fingerprint != fingerprint:
            cron.fingerprint = fingerprint
            cron.watermark = max(cron.watermark, start)
        return state.cron_record(cron)

    async def decide_fires(
        self, queue: QueueName, term: int, requests: Sequence[FireRequest]
    ) -> tuple[Verdict | FireAnswer, ...]:
        state = self._fence(queue, term)
        answers = tuple(decide_fire(state, request) for request in requests)
        state.wake()
        await self._announce()
        return answers

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
        state = self._open(queue) if term is None else self._fence(queue, term)
        last = state.run_now_nonces.get(uid)
        if term is not None and last == nonce:
            state.counters["known"] += 1
            return False
        found = state.insert(job, job.encode(), cron=uid)
        if found.inserted and uid in state.crons:
            state.runs_by_hand[uid] += 1
            state.fires.note_run(
                uid, job.id, FireKind.BY_HAND, state.now, state.now, one_line(note)
            )
        if term is not None and (found.inserted or last is None):
            state.run_now_nonces[uid] = nonce
        state.wake()
        await self._announce()
        return found.inserted

    async def put_crontasks(
        self, queue: QueueName, term: int, documents: Mapping[str, bytes]
    ) -> None:
        state = self._fence(queue, term)
        for uid in set(state.crontasks) - set(documents):
            state.crons.pop(uid, None)
            state.run_now_nonces.pop(uid, None)
            state.runs_by_hand.pop(uid, None)
            state.fires.forget(uid)
            state.suspensions.pop(uid, None)
            state.backfilled.pop(uid, None)
        state.crontasks = dict(documents)
