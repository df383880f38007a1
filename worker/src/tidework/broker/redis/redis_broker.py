"""The Broker on Redis or Valkey: a method per script, encoding and decoding, nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tidework.broker.answers import (
    CancelAnswer,
    CordonAnswer,
    DeleteAnswer,
    PromoteAnswer,
    PurgeAnswer,
    ReplayAnswer,
    UncordonAnswer,
    UpkeepReply,
)
from tidework.broker.broker import KEEP_TASKS
from tidework.broker.connection.transport import AsyncTransport, BlockingTransport
from tidework.broker.documents import (
    MAX_DOCUMENT_BYTES,
    MOST_BYTES,
    AcceptedDocument,
    Beginning,
    RejectedDocument,
)
from tidework.broker.keys import queue_key
from tidework.broker.redis.acts import RedisActs
from tidework.broker.redis.calls import due_ms, unique_spec
from tidework.broker.redis.cron_acts import RedisCronActs
from tidework.broker.redis.leading import RedisLeading
from tidework.broker.redis.once import RedisOnce
from tidework.broker.redis.progress import RedisProgress
from tidework.broker.redis.readouts import RedisReadouts
from tidework.broker.redis.replies import (
    read_documents,
    read_exchange,
    read_renewal,
    read_upkeep,
)
from tidework.broker.redis.statistics import RedisStatistics
from tidework.broker.redis.stored import stored_body
from tidework.broker.scripts import Value
from tidework.errors import (
    StaleRequestError,
    UniqueConflictError,
)
from tidework.model.backlog import (
    Presence,
    StacksAnswer,
)
from tidework.model.identity import QueueName
from tidework.model.job import Enqueued, Job
from tidework.model.lease import (
    ExchangeReply,
    ExchangeRequest,
    LimitsOf,
    QueueLimits,
    RenewReply,
    Settlement,
)
from tidework.model.outcome import JobError, OutcomeKind

BATCH = 100
"""How many jobs one script promotes, reaps or prunes at most."""
ANNOUNCE_BATCH = 500
"""How many jobs of unknown tasks one script looks at."""

_MS = timedelta(milliseconds=1)
_DIGITS = tuple(b"%d" % digit for digit in range(10))
_DEADLY = frozenset({OutcomeKind.BURY, OutcomeKind.LOSS})
_IN_WORDS = frozenset({OutcomeKind.RELEASE, OutcomeKind.CANCELLED})
"""Their detail is the cause, which goes into the history."""
_UNKNOWN = "u"
"""A release whose detail is how long it may wait for a worker that knows its task, ms."""


def connect(url: str, limits: QueueLimits | LimitsOf | None = None) -> RedisBroker:
    """A broker for programs with an event loop. No I/O before the first call.

    limits: the bounds of every queue, or a function that knows those of each.
    """
    return RedisBroker(AsyncTransport(url), limits)


def connect_blocking(url: str) -> RedisBroker:
    """A broker whose coroutines never suspend: run them with ``transport.drive``."""
    return RedisBroker(BlockingTransport(url))


class RedisBroker(
    RedisActs, RedisCronActs, RedisLeading, RedisOnce, RedisProgress, RedisReadouts, RedisStatistics
):
    """Implements Broker over a Transport."""

    async def enqueue(self, queue: QueueName, jobs: Sequence[Job]) -> tuple[Enqueued, ...]:
        rest: list[Value] = []
        for job in jobs:
            body = stored_body(job.task, job.id, job.encode())
            due = due_ms(job)
            unique = "" if job.unique is None else unique_spec(job)
            rest += (job.id, body, _DIGITS[job.priority], due, unique)
        reply = await self._write("enqueue", queue, rest)
        if reply[0] == b"conflict":
            raise UniqueConflictError(reply[1].decode(), reply[2].decode(), str(queue))
        return tuple(
            [
                Enqueued(found.decode(), False)
                if isinstance(found, bytes)
                else Enqueued(job.id, found == 1)
                for job, found in zip(jobs, reply[1], strict=True)
            ]
        )

    async def cancel(self, queue: QueueName, job_id: str) -> CancelAnswer:
        found: bytes = await self._write("cancel", queue, id=job_id)
        return CancelAnswer(found.decode())

    async def promote(self, queue: QueueName, job_id: str) -> PromoteAnswer:
        found: bytes = await self._write("promote_job", queue, id=job_id)
        return PromoteAnswer(found.decode())

    async def replay(self, queue: QueueName, job_ids: Sequence[str]) -> tuple[ReplayAnswer, ...]:
        found = await self._write("replay", queue, job_ids)
        return tuple(ReplayAnswer(raw.decode()) for raw in found)

    async def purge(self, queue: QueueName, job_ids: Sequence[str]) -> tuple[PurgeAnswer, ...]:
        found = await self._write("purge", queue, job_ids)
        return tuple(PurgeAnswer(raw.decode()) for raw in found)

    async def delete(self, queue: QueueName, job_id: str) -> DeleteAnswer:
        found: bytes = await self._write("delete_job", queue, id=job_id)
        return DeleteAnswer(found.decode())

    async def pause(self, queue: QueueName, reason: str) -> bool:
        return bool(await self._run("pause", queue, reason=reason))

    async def resume(self, queue: QueueName) -> bool:
        return bool(await self._run("resume", queue))

    async def cordon(self, queue: QueueName, incarnation: str) -> CordonAnswer | None:
        found = await self._run("cordon", queue, incarnation=incarnation)
        return None if found is None else CordonAnswer(found[1], before=not found[0])

    async def uncordon(self, queue: QueueName, incarnation: str) -> UncordonAnswer:
        undone, still = await self._run("uncordon", queue, incarnation=incarnation)
        return UncordonAnswer(bool(undone), bool(still))

    async def ask_stacks(self, queue: QueueName, incarnation: str) -> int | None:
        return await self._run("ask_stacks", queue, incarnation=incarnation) or None

    async def wait_for_document(self, queue: QueueName, timeout: timedelta) -> bytes | None:
        inbox, intake = queue_key(queue, "inbox"), queue_key(queue, "intake")
        document, _ = await self.transport.take(inbox, intake, timeout)
        return document

    async def wait_then_exchange(
        self, queue: QueueName, timeout: timedelta, request: ExchangeRequest
    ) -> tuple[bytes | None, ExchangeReply | None]:
        inbox, intake = queue_key(queue, "inbox"), queue_key(queue, "intake")
        rest, named = self._exchange_arguments(queue, request)
        call = self._call("exchange", queue, rest, **named)
        document, reply = await self.transport.take(inbox, intake, timeout, call)
        return document, None if reply is None else _read_exchange(request, reply)

    async def intake(
        self,
        queue: QueueName,
        accepted: Sequence[AcceptedDocument],
        rejected: Sequence[RejectedDocument],
        *,
        more: int = 0,
        full: bool = False,
    ) -> tuple[bytes, ...]:
        rest: list[Value] = []
        for found in accepted:
            job = found.job
            body = stored_body(job.task, job.id, found.body)
            rest += (found.raw, job.id, int(found.named), body, job.priority)
            rest += (due_ms(job), unique_spec(job))
        for refused in rejected:
            raw, error = refused.raw, refused.error
            length = raw.length if isinstance(raw, Beginning) else ""
            rest += (raw, length, refused.named, refused.id, error.encode(), error.fingerprint)
        moved = await self._write(
            "intake_full" if full else "intake",
            queue,
            rest,
            accepted=len(accepted),
            rejected=len(rejected),
            more=more,
            most_bytes=MOST_BYTES,
            longest=MAX_DOCUMENT_BYTES,
        )
        return read_documents(moved)

    async def stranded(self, queue: QueueName, limit: int, skip: int = 0) -> tuple[bytes, ...]:
        found = await self._run(
            "stranded",
            queue,
            skip=skip,
            limit=limit,
            most_bytes=MOST_BYTES,
            longest=MAX_DOCUMENT_BYTES,
        )
        return read_documents(found)

    async def exchange(self, queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        # A claim that is lost with the primary is only claimed again; an outcome has to be safe.
        send = self._write if request.settlements else self._run
        rest, named = self._exchange_arguments(queue, request)
        return _read_exchange(request, await send("exchange", queue, rest, **named))

    def _exchange_arguments(
        self, queue: QueueName, request: ExchangeRequest
    ) -> tuple[list[Value], dict[str, Value]]:
        succeeded, settled = _sorted_by_end(request.settlements)
        rest: list[Value] = []
        for token, ids in succeeded.items():
            rest += (token, len(ids), *ids)
        rest += settled
        for task, ran in request.served.items():
            rest += (task, ran.count, ran.seconds * 1000, len(ran.buckets))
            rest += [value for bucket in ran.buckets.items() for value in bucket]
        limits = self._limits_of(queue)
        return rest, {
            "incarnation": request.incarnation,
            "sequence": request.sequence,
            "want": request.want,
            "woken": int(request.woken),
            "lease_ms": limits.lease // _MS,
            "poison_cap": limits.poison_cap,
            "release_cap": limits.release_cap,
            "keep_succeeded_ms": limits.keep_succeeded // _MS,
            "keep_dead_ms": limits.keep_dead // _MS,
            "keep_count": limits.keep_count,
            "batch": BATCH,
            "most_held": "" if request.most_held is None else request.most_held,
            "succeeded": len(succeeded),
            "settled": len(settled) // 6,
            "served": len(request.served),
        }

    async def renew(
        self, queue: QueueName, incarnation: str, leases: Sequence[tuple[str, str]]
    ) -> RenewReply:
        rest = [value for lease in leases for value in lease]
        reply = await self._run(
            "renew",
            queue,
            rest,
            incarnation=incarnation,
            lease_ms=self._limits_of(queue).lease // _MS,
        )
        return read_renewal(reply)

    async def beat(
        self,
        queue: QueueName,
        presence: Presence,
        *,
        ttl: timedelta,
        stacks: StacksAnswer | None = None,
    ) -> int:
        _, asked = await self._run(
            "beat",
            queue,
            incarnation=presence.incarnation,
            document=json.dumps(presence.document),
            ttl_ms=ttl // _MS,
            answered=0 if stacks is None else stacks.number,
            stacks="" if stacks is None else json.dumps(stacks.document),
        )
        return int(asked)

    async def announce(self, queue: QueueName, version: str, tasks: Sequence[str]) -> int:
        passed = recalled = 0
        more = True
        while more:
            looked_at, taken = await self._run(
                "announce",
                queue,
                tasks,
                version=version,
                **{"from": passed},
                batch=ANNOUNCE_BATCH,
                keep_ms=KEEP_TASKS // _MS,
            )
            passed += looked_at - taken
            recalled += taken
            more = looked_at == ANNOUNCE_BATCH
        return recalled

    async def leave(self, queue: QueueName, incarnation: str) -> None:
        await self._run("leave", queue, incarnation=incarnation)

    async def upkeep(self, queue: QueueName) -> UpkeepReply:
        limits = self._limits_of(queue)
        promoted, reaped, pruned = await self.transport.run_all(
            [
                self._call("promote", queue, batch=BATCH),
                self._call(
                    "reap",
                    queue,
                    batch=BATCH,
                    lease_ms=limits.lease // _MS,
                    poison_cap=limits.poison_cap,
                ),
                self._call(
                    "prune",
                    queue,
                    batch=BATCH,
                    keep_succeeded_ms=limits.keep_succeeded // _MS,
                    keep_dead_ms=limits.keep_dead // _MS,
                    keep_count=limits.keep_count,
                    keep_presence_ms=limits.keep_presence // _MS,
                ),
            ]
        )
        return read_upkeep(promoted, reaped, pruned, limits.keep_count)


def _read_exchange(request: ExchangeRequest, reply: Sequence[Any]) -> ExchangeReply:
    if reply[0] == b"stale":
        raise StaleRequestError(
            f"exchange {request.sequence} of {request.incarnation} came after {reply[1]}"
        )
    return read_exchange(reply, f"{request.incarnation}:{request.sequence}")


def _sorted_by_end(
    settlements: Sequence[Settlement],
) -> tuple[dict[str, list[str]], list[Value]]:
    """Ids by token of what succeeded without a result; the others as exchange.lua takes them."""
    succeeded: dict[str, list[str]] = {}
    settled: list[Value] = []
    others: set[str] = set()
    for found in settlements:
        outcome = found.outcome
        kind = outcome.kind
        if kind is OutcomeKind.COMPLETE and not outcome.detail and found.id not in others:
            succeeded.setdefault(found.token, []).append(found.id)
            continue
        extra: Value = outcome.delay // _MS
        if kind in _DEADLY:
            extra = JobError.decode(outcome.detail).fingerprint
        others.add(found.id)  # of two ends of one job the first one counts
        letter, detail = kind.value, b"" if kind in _IN_WORDS else outcome.detail
        if outcome.unknown_for is not None:
            letter, detail = _UNKNOWN, b"%d" % (outcome.unknown_for // _MS)
        settled += (found.id, found.token, letter, extra, detail, outcome.cause)
    return succeeded, settled
