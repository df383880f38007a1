"""The reference model: the Broker's contract in plain Python, for one process.

It is written to be read and compared, not to be fast: whatever a script does in Redis happens
here in one method without an await. Tests run against it and against real servers alike.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tidework.broker.broker import (
    MARKER,
    AcceptedDocument,
    CancelAnswer,
    RejectedDocument,
    UpkeepReply,
)
from tidework.broker.memory_entry import read_record
from tidework.broker.memory_fires import decide_fire
from tidework.broker.memory_state import QueueState
from tidework.clock import Clock, SystemClock, from_ms, to_ms
from tidework.errors import StaleRequestError, StaleTermError
from tidework.model.backlog import JobPage, JobRecord, Presence, QueueLoad, QueueStats
from tidework.model.fire import (
    CronRecord,
    FireAnswer,
    FireRequest,
    Verdict,
)
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import (
    ClaimedJob,
    CordonedWorker,
    ExchangeReply,
    ExchangeRequest,
    QueueLimits,
    RenewReply,
)

BATCH = 100


class MemoryBroker:
    """A Broker that lives and dies with its process."""

    def __init__(self, clock: Clock | None = None, limits: QueueLimits | None = None) -> None:
        self._clock = clock or SystemClock()
        self._limits = limits or QueueLimits()
        self._queues: dict[QueueName, QueueState] = {}
        self._documents = asyncio.Condition()

    def _open(self, queue: QueueName) -> QueueState:
        state = self._queues.setdefault(queue, QueueState(self._limits))
        state.now = to_ms(self._clock.now())
        return state

    async def _announce(self) -> None:
        async with self._documents:
            self._documents.notify_all()

    async def open_queue(self, queue: QueueName) -> None:
        self._open(queue)

    async def enqueue(self, queue: QueueName, jobs: Sequence[Job]) -> tuple[bool, ...]:
        state = self._open(queue)
        bodies = [job.encode() for job in jobs]
        inserted = tuple(
            state.insert(job, body) is not None for job, body in zip(jobs, bodies, strict=True)
        )
        state.wake()
        await self._announce()
        return inserted

    async def cancel(self, queue: QueueName, job_id: str) -> CancelAnswer:
        state = self._open(queue)
        answer = CancelAnswer(state.cancel(job_id))
        state.wake()
        await self._announce()
        return answer

    async def get_job(self, queue: QueueName, job_id: str) -> JobRecord | None:
        entry = self._open(queue).entries.get(job_id)
        return None if entry is None else read_record(entry)

    async def list_jobs(
        self, queue: QueueName, state: JobState, *, cursor: str | None = None, limit: int = 100
    ) -> JobPage:
        found = self._open(queue).in_state(state)
        start = int(cursor or 0)
        page = tuple(entry.id for entry in found[start : start + limit])
        more = start + limit < len(found)
        return JobPage(page, str(start + limit) if more else None)

    async def stats(self, queue: QueueName) -> QueueStats:
        state = self._open(queue)
        states = {name: len(state.in_state(name)) for name in JobState}
        return QueueStats(states, state.documents(), state.oldest_age(), dict(state.counters))

    async def queues(self) -> tuple[QueueName, ...]:
        return tuple(sorted(self._queues))

    async def close(self) -> None:
        return None

    async def wait_for_document(self, queue: QueueName, timeout: timedelta) -> bytes | None:
        state = self._open(queue)
        async with self._documents:
            try:
                async with asyncio.timeout(timeout.total_seconds()):
                    await self._documents.wait_for(lambda: bool(state.inbox))
            except TimeoutError:
                return None
            document = state.inbox.popleft()
            state.intake.append(document)
            return document

    async def put_document(self, queue: QueueName, document: bytes) -> None:
        """What a foreign program does with LPUSH."""
        self._open(queue).inbox.append(document)
        await self._announce()

    async def intake(
        self,
        queue: QueueName,
        accepted: Sequence[AcceptedDocument],
        rejected: Sequence[RejectedDocument],
        *,
        more: int = 0,
    ) -> tuple[bytes, ...]:
        state = self._open(queue)
        for found in accepted:
            if state.take_document(found.raw):
                state.insert(found.job, found.body)
        for refused in rejected:
            if state.take_document(refused.raw):
                state.bury_document(refused.id, refused.raw, refused.error)
        taken = [state.inbox.popleft() for _ in range(min(more, len(state.inbox)))]
        moved = [raw for raw in taken if raw != MARKER]
        state.intake.extend(moved)
        state.wake()
        await self._announce()
        return tuple(moved)

    async def stranded(self, queue: QueueName, limit: int) -> tuple[bytes, ...]:
        state = self._open(queue)
        state.intake = [raw for raw in state.intake if raw != MARKER]
        return tuple(state.intake[:limit])

    async def exchange(self, queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        state = self._open(queue)
        last, reply = state.replies.get(request.incarnation, (0, None))
        if request.sequence < last:
            state.counters["stale_requests"] += 1
            raise StaleRequestError(
                f"exchange {request.sequence} of {request.incarnation} came after {last}"
            )
        if request.sequence == last and reply is not None:
            claimed = tuple(c for c in reply.claimed if state.holds(c))
            for found in claimed:
                state.entries[found.id].lease_ms = state.now + state.lease_ms
            return replace(reply, claimed=claimed)
        may_reap = state.stamp()
        if request.woken and MARKER in state.intake:
            state.intake.remove(MARKER)
        refused = tuple(found.id for found in request.settlements if not state.settle(found))
        state.note_served(request.served)
        state.promote(BATCH)
        if may_reap:
            state.reap(BATCH)
        draining = state.is_cordoned(request.incarnation)
        token = f"{request.incarnation}:{request.sequence}"
        claimed = tuple(
            ClaimedJob(e.id, token, e.attempt, e.deliveries, e.losses, e.releases, e.body)
            for e in state.claim(0 if draining else request.want, token)
        )
        state.prune(BATCH)
        state.wake()
        reply = ExchangeReply(
            claimed=claimed,
            refused=refused,
            next_due=state.next_due(),
            backlog=len(state.in_state(JobState.READY)),
            intake=state.documents(),
            draining=draining,
        )
        state.replies[request.incarnation] = (request.sequence, reply)
        await self._announce()
        return reply

    async def renew(
        self, queue: QueueName, incarnation: str, leases: Sequence[tuple[str, str]]
    ) -> RenewReply:
        state = self._open(queue)
        state.stamp()
        lost, cancel = [], []
        for job_id, token in leases:
            entry = state.entries.get(job_id)
            if entry is None or entry.state != JobState.RUNNING or entry.token != token:
                lost.append(job_id)
                continue
            entry.lease_ms = state.now + state.lease_ms
            if entry.cancel:
                cancel.append(job_id)
        return RenewReply(
            tuple(lost),
            tuple(cancel),
            state.next_due(),
            state.documents(),
            state.is_cordoned(incarnation),
        )

    async def beat(self, queue: QueueName, presence: Presence, *, ttl: timedelta) -> None:
        state = self._open(queue)
        seen = from_ms(state.now)
        state.presence[presence.incarnation] = Presence(
            presence.incarnation, seen, json.loads(json.dumps(presence.document))
        )
        state.forget_absent(ttl)

    async def leave(self, queue: QueueName, incarnation: str) -> None:
        state = self._open(queue)
        # Its last reply stays: a request of it that was sent twice may still be on its way.
        state.presence.pop(incarnation, None)

    async def workers(self, queue: QueueName) -> tuple[Presence, ...]:
        found = self._open(queue).presence
        return tuple(found[name] for name in sorted(found))

    async def upkeep(self, queue: QueueName) -> UpkeepReply:
        state = self._open(queue)
        promoted = state.promote(BATCH)
        reaped, buried = state.reap(BATCH) if state.stamp() else (0, 0)
        pruned = state.prune(BATCH)
        state.forget_absent(self._limits.keep_presence)
        state.wake()
        await self._announce()
        return UpkeepReply(promoted, reaped, buried, pruned, state.next_due())

    async def gather(self, queue: QueueName, *, horizon: timedelta) -> QueueLoad:
        state = self._open(queue)
        scheduled = [e for e in state.in_state(JobState.SCHEDULED) if not e.held]
        due = [e for e in scheduled if e.available_ms <= state.now]
        until = state.now + horizon // timedelta(milliseconds=1)
        soon = [e for e in scheduled if state.now < e.available_ms <= until]
        waiting = [e.available_ms for e in scheduled]
        busy = Counter(e.worker for e in state.in_state(JobState.RUNNING))
        return QueueLoad(
            backlog=state.documents() + len(state.in_state(JobState.READY)) + len(due),
            due_soon=len(soon),
            in_flight=sum(busy.values()),
            busy_workers=dict(busy),
            oldest_age=state.oldest_age(),
            next_due=min(waiting, default=None),
            enqueued=state.counters["enqueued"],
            service_time=dict(state.service_time),
            now_ms=state.now,
        )

    async def drain(
        self, queue: QueueName, term: int, candidates: Sequence[str], count: int, *, ttl: timedelta
    ) -> tuple[CordonedWorker, ...]:
        state = self._fence(queue, term)
        busy = Counter(e.worker for e in state.in_state(JobState.RUNNING))
        ranked = sorted(candidates, key=lambda w: (busy[w], not state.is_cordoned(w), w))
        until = state.now + ttl // timedelta(milliseconds=1)
        state.draining = dict.fromkeys(ranked[:count], until)
        state.wake()
        await self._announce()
        return tuple(CordonedWorker(worker, busy[worker]) for worker in ranked[:count])

    async def take_term(self, queue: QueueName) -> int:
        state = self._open(queue)
        state.term += 1
        return state.term

    async def lead(self, queue: QueueName, holder: str, ttl: timedelta) -> int | None:
        state = self._open(queue)
        held_by, term, until = state.leader
        if held_by and until > state.now:
            if (held_by, term) != (holder, state.term):
                return None
        else:
            state.term += 1
        state.leader = (holder, state.term, state.now + ttl // timedelta(milliseconds=1))
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
        self, queue: QueueName, term: int | None, uid: str, nonce: str, job: Job
    ) -> bool:
        state = self._open(queue) if term is None else self._fence(queue, term)
        cron = state.crons.get(uid)
        if term is not None and cron is not None:
            if cron.last_run_now == nonce:
                return False
            cron.last_run_now = nonce
        entry = state.insert(job, job.encode(), cron=uid)
        state.wake()
        await self._announce()
        return entry is not None

    async def put_crontasks(
        self, queue: QueueName, term: int, documents: Mapping[str, bytes]
    ) -> None:
        state = self._fence(queue, term)
        for uid in set(state.crontasks) - set(documents):
            state.crons.pop(uid, None)
        state.crontasks = dict(documents)

    async def crontasks(self, queue: QueueName) -> Mapping[str, Any]:
        return {uid: json.loads(raw) for uid, raw in sorted(self._open(queue).crontasks.items())}

    async def cron_record(self, queue: QueueName, uid: str) -> CronRecord | None:
        state = self._open(queue)
        cron = state.crons.get(uid)
        return None if cron is None else state.cron_record(cron)
