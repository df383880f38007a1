"""The reference model: the Broker's contract in plain Python, for one process.

It is written to be read and compared, not to be fast: whatever a script does in Redis happens
here in one method without an await. Tests run against it and against real servers alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from tidework.broker.answers import (
    CancelAnswer,
    DeleteAnswer,
    PromoteAnswer,
    PurgeAnswer,
    ReplayAnswer,
    UpkeepReply,
)
from tidework.broker.documents import (
    MARKER,
    MOST_BYTES,
    AcceptedDocument,
    RejectedDocument,
    hand_out,
)
from tidework.clock import from_ms
from tidework.errors import StaleRequestError, UniqueConflictError
from tidework.model.backlog import Pause
from tidework.model.identity import QueueName
from tidework.model.job import Enqueued, Job, JobState
from tidework.model.lease import (
    TOMBSTONE_MS,
    ClaimedJob,
    ExchangeReply,
    ExchangeRequest,
    RenewReply,
)
from tidework.model.outcome import JobError
from tidework.model.unique import OnConflict
from tidework.testing.memory.acts import MemoryActs
from tidework.testing.memory.cron_acts import MemoryCronActs
from tidework.testing.memory.leading import MemoryLeading
from tidework.testing.memory.once import MemoryOnce, prune_onces
from tidework.testing.memory.presence import MemoryPresence
from tidework.testing.memory.progress import MemoryProgress
from tidework.testing.memory.readouts import MemoryReadouts
from tidework.testing.memory.state import QueueState
from tidework.testing.memory.statistics import MemoryStatistics

BATCH = 100
SEEN_EVERY = 16


class MemoryBroker(
    MemoryActs,
    MemoryCronActs,
    MemoryLeading,
    MemoryOnce,
    MemoryPresence,
    MemoryProgress,
    MemoryReadouts,
    MemoryStatistics,
):
    """A Broker that lives and dies with its process."""

    async def enqueue(self, queue: QueueName, jobs: Sequence[Job]) -> tuple[Enqueued, ...]:
        state = self._open(queue)
        bodies = [job.encode() for job in jobs]
        conflict = _find_conflict(state, jobs)
        if conflict is not None:
            state.counters["conflicts"] += 1
            raise UniqueConflictError(*conflict, str(queue))
        enqueued = tuple(state.insert(job, body) for job, body in zip(jobs, bodies, strict=True))
        state.wake()
        await self._announce()
        return enqueued

    async def cancel(self, queue: QueueName, job_id: str) -> CancelAnswer:
        state = self._open(queue)
        answer = CancelAnswer(state.cancel(job_id))
        state.counters["cancel_requests"] += 1
        state.wake()
        await self._announce()
        return answer

    async def promote(self, queue: QueueName, job_id: str) -> PromoteAnswer:
        state = self._open(queue)
        answer = PromoteAnswer(state.promote_by_hand(job_id))
        state.wake()
        await self._announce()
        return answer

    async def replay(self, queue: QueueName, job_ids: Sequence[str]) -> tuple[ReplayAnswer, ...]:
        state = self._open(queue)
        answers = tuple(ReplayAnswer(state.replay(job_id)) for job_id in job_ids)
        state.counters["replay_requests"] += 1
        state.wake()
        await self._announce()
        return answers

    async def purge(self, queue: QueueName, job_ids: Sequence[str]) -> tuple[PurgeAnswer, ...]:
        state = self._open(queue)
        state.counters["purge_requests"] += 1
        return tuple(PurgeAnswer(state.purge(job_id)) for job_id in job_ids)

    async def delete(self, queue: QueueName, job_id: str) -> DeleteAnswer:
        state = self._open(queue)
        entry = state.entries.get(job_id)
        if entry is not None and entry.state is JobState.RUNNING:
            return DeleteAnswer.RUNNING
        if state.cancel(job_id) == "unknown":
            return DeleteAnswer.UNKNOWN
        state.purge(job_id)
        state.wake()
        await self._announce()
        return DeleteAnswer.DELETED

    async def pause(self, queue: QueueName, reason: str) -> bool:
        state = self._open(queue)
        if state.pause is not None:
            return False
        state.pause = Pause(from_ms(state.now), reason)
        return True

    async def resume(self, queue: QueueName) -> bool:
        state = self._open(queue)
        was_paused, state.pause = state.pause is not None, None
        state.wake()
        await self._announce()
        return was_paused

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
            return hand_out(document)

    async def wait_then_exchange(
        self, queue: QueueName, timeout: timedelta, request: ExchangeRequest
    ) -> tuple[bytes | None, ExchangeReply | None]:
        document = await self.wait_for_document(queue, timeout)
        return document, await self.exchange(queue, request)

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
        full: bool = False,
    ) -> tuple[bytes, ...]:
        state = self._open(queue)
        for found in accepted:
            is_copy = not found.named and state.is_known(found.job.id)
            if not is_copy and state.take_document(found.raw):
                _take_in(state, found)
        for refused in rejected:
            if not state.is_known(refused.id) and state.take_document(refused.raw):
                _refuse(state, refused)
        may_move = not full or len(state.in_state(JobState.READY)) < more
        moved: list[bytes] = []
        for _ in range(min(more, len(state.inbox)) if may_move else 0):
            if sum(map(len, moved)) >= MOST_BYTES:
                break
            raw = state.inbox.popleft()
            if raw != MARKER:
                state.intake.append(raw)
                moved.append(hand_out(raw))
        state.wake()
        await self._announce()
        return tuple(moved)

    async def stranded(self, queue: QueueName, limit: int, skip: int = 0) -> tuple[bytes, ...]:
        state = self._open(queue)
        state.intake = [raw for raw in state.intake if raw != MARKER]
        found: list[bytes] = []
        for raw in state.intake[skip : skip + limit]:
            if sum(map(len, found)) >= MOST_BYTES:
                break
            found.append(hand_out(raw))
        return tuple(found)

    async def exchange(self, queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        state = self._open(queue)
        kind = request.most_held is not None
        last, reply = state.replies.get((request.incarnation, kind), (0, None))
        if request.sequence < last:
            state.counters["stale_requests"] += 1
            raise StaleRequestError(
                f"exchange {request.sequence} of {request.incarnation} came after {last}"
            )
        if request.sequence == last and reply is not None:
            state.counters["repeated"] += 1
            claimed = tuple(c for c in reply.claimed if state.holds(c))
            for found in claimed:
                state.entries[found.id].lease_ms = state.now + state.lease_ms
            return _reply(state, request, claimed, reply.refused)
        may_reap = state.stamp()
        if request.woken and MARKER in state.intake:
            state.intake.remove(MARKER)
        refused = tuple(found.id for found in request.settlements if not state.settle(found))
        state.note_served(request.served)
        state.promote(BATCH)
        if may_reap:
            state.reap(BATCH)
        may_claim = not state.is_cordoned(request.incarnation) and state.pause is None
        token = f"{request.incarnation}:{request.sequence}"
        want = request.want if may_claim else 0
        if request.most_held is not None:
            want = min(want, request.most_held - state.leases_of(request.incarnation))
        claimed = tuple(
            ClaimedJob(e.id, token, e.attempt, e.deliveries, e.losses, e.releases, e.body)
            for e in state.claim(want, token)
        )
        if request.settlements:
            state.prune(BATCH)
        state.wake()
        reply = _reply(state, request, claimed, refused)
        is_known = any((request.incarnation, either) in state.replies for either in (False, True))
        state.replies[request.incarnation, kind] = (request.sequence, reply)
        if not is_known or request.sequence % SEEN_EVERY == 0:
            state.seen[request.incarnation] = state.now
        await self._announce()
        return reply

    async def renew(
        self, queue: QueueName, incarnation: str, leases: Sequence[tuple[str, str]]
    ) -> RenewReply:
        state = self._open(queue)
        state.stamp()
        state.woken()
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
            state.pause is not None,
            state.stack_requests.is_waiting(incarnation),
        )

    async def upkeep(self, queue: QueueName) -> UpkeepReply:
        state = self._open(queue)
        promoted = state.promote(BATCH)
        reaped, buried = state.reap(BATCH) if state.stamp() else (0, 0)
        pruned = state.prune(BATCH)
        state.forget_absent(self._limits.keep_presence)
        state.uniques.prune(state.now, BATCH)
        prune_onces(state, BATCH)
        state.wake()
        await self._announce()
        return UpkeepReply(
            promoted,
            reaped,
            buried,
            pruned,
            state.next_due(),
            len(state.in_state(JobState.DEAD)),
            self._limits.keep_count,
            state.counters["dead_dropped"],
            state.documents(),
        )


def _reply(
    state: QueueState,
    request: ExchangeRequest,
    claimed: tuple[ClaimedJob, ...],
    refused: tuple[str, ...],
) -> ExchangeReply:
    asked = state.stack_requests.is_waiting(request.incarnation)
    return ExchangeReply(
        claimed=claimed,
        refused=refused,
        next_due=state.next_due(),
        backlog=len(state.in_state(JobState.READY)),
        intake=state.documents(),
        cordoned=state.is_cordoned(request.incarnation),
        paused=state.pause is not None,
        stacks_asked=asked and request.want > 0 and not claimed,
    )


def _find_conflict(state: QueueState, jobs: Sequence[Job]) -> tuple[str, str] | None:
    """The first key and its holder that a job may not meet; jobs before it count as holders."""
    taken: dict[str, str] = {}
    for job in jobs:
        unique = job.unique
        if unique is None or state.is_known(job.id):
            continue
        holder = taken.get(unique.key) or state.uniques.holder_of(unique.key, state.now)
        if holder and unique.on_conflict is OnConflict.ERROR:
            return unique.key, holder
        if not holder or unique.on_conflict is OnConflict.REPLACE:
            taken[unique.key] = job.id
    return None


def _refuse(state: QueueState, refused: RejectedDocument) -> None:
    name = refused.id
    if refused.named:
        there = state.entries.get(refused.named)
        if not state.is_known(refused.named):
            name = refused.named
        elif there is not None and there.raw and there.body == refused.raw:
            state.counters["known"] += 1
            return
    state.bury_document(name, refused.raw, refused.error)
    state.tombstones[refused.id] = state.now + TOMBSTONE_MS


def _take_in(state: QueueState, found: AcceptedDocument) -> None:
    job = found.job
    was_known = state.is_known(job.id)
    answer = state.insert(job, found.body)
    unique = job.unique
    if answer.inserted or was_known or unique is None or unique.on_conflict is not OnConflict.ERROR:
        return
    text = f"its unique key is held by job {answer.id}"
    error = JobError("UniqueConflictError", text, cause="unique")
    state.bury_document(job.id, found.body, error, of=job)
