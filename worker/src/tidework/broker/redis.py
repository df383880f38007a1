"""The Broker on Redis or Valkey: a method per script, encoding and decoding, nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from tidework.broker.broker import (
    AcceptedDocument,
    CancelAnswer,
    RejectedDocument,
    UpkeepReply,
)
from tidework.broker.keys import LAYOUT, REGISTRY, queue_key
from tidework.broker.replies import (
    read_cron,
    read_exchange,
    read_job,
    read_load,
    read_stats,
    read_wait,
)
from tidework.broker.scripts import Value, load_script
from tidework.broker.transport import AsyncTransport, BlockingTransport, Call, Transport
from tidework.clock import from_ms
from tidework.errors import LayoutError, StaleRequestError, StaleTermError
from tidework.model.backlog import JobPage, JobRecord, Presence, QueueLoad, QueueStats
from tidework.model.fire import CronRecord, FireAnswer, FireRequest, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import (
    CordonedWorker,
    ExchangeReply,
    ExchangeRequest,
    QueueLimits,
    RenewReply,
)

BATCH = 100
"""How many jobs one script promotes, reaps or prunes at most."""

FIRES_PER_SCRIPT = 50
"""More would keep the server busy for longer than its other clients like."""

_MS = timedelta(milliseconds=1)


LimitsOf = Callable[[QueueName], QueueLimits]


def connect(url: str, limits: QueueLimits | LimitsOf | None = None) -> RedisBroker:
    """A broker for programs with an event loop. No I/O before the first call.

    limits: the bounds of every queue, or a function that knows those of each.
    """
    return RedisBroker(AsyncTransport(url), limits)


def connect_blocking(url: str) -> RedisBroker:
    """A broker whose coroutines never suspend: run them with ``transport.drive``."""
    return RedisBroker(BlockingTransport(url))


def _due_ms(job: Job) -> Value:
    return "" if job.available_at is None else round(job.available_at * 1000)


class RedisBroker:
    """Implements Broker over a Transport."""

    def __init__(self, transport: Transport, limits: QueueLimits | LimitsOf | None = None) -> None:
        self.transport = transport
        same = QueueLimits() if limits is None else limits
        self._limits_of: LimitsOf = same if callable(same) else lambda _: same
        self._opened: set[QueueName] = set()

    def _call(
        self, name: str, queue: QueueName, rest: Sequence[Value] = (), **named: Value
    ) -> Call:
        script = load_script(name)
        return script, script.keys_of(queue), script.argv(named, rest)

    async def _run(
        self, name: str, queue: QueueName, rest: Sequence[Value] = (), **named: Value
    ) -> Any:
        return await self.transport.run(self._call(name, queue, rest, **named))

    async def open_queue(self, queue: QueueName) -> None:
        if queue in self._opened:
            return
        layout, least = await self._run("open_queue", queue, layout=LAYOUT)
        if least > LAYOUT:
            raise LayoutError(
                f"queue {queue} has layout {layout} and needs clients of layout {least} or later; "
                f"this one has {LAYOUT}: upgrade tidework"
            )
        if layout < LAYOUT:
            raise LayoutError(
                f"queue {queue} has layout {layout}, this client has {LAYOUT}: upgrade it with "
                "the release between"
            )
        await self.transport.command("SADD", REGISTRY, str(queue))
        self._opened.add(queue)

    async def enqueue(self, queue: QueueName, jobs: Sequence[Job]) -> tuple[bool, ...]:
        if queue not in self._opened:
            await self.open_queue(queue)
        rest: list[Value] = []
        for job in jobs:
            rest += (job.id, job.encode(), job.priority, _due_ms(job))
        return tuple(bool(found) for found in await self._run("enqueue", queue, rest))

    async def cancel(self, queue: QueueName, job_id: str) -> CancelAnswer:
        found: bytes = await self._run("cancel", queue, id=job_id)
        return CancelAnswer(found.decode())

    async def get_job(self, queue: QueueName, job_id: str) -> JobRecord | None:
        found = await self._run("get_job", queue, id=job_id)
        return None if found is None else read_job(job_id, found)

    async def list_jobs(
        self, queue: QueueName, state: JobState, *, cursor: str | None = None, limit: int = 100
    ) -> JobPage:
        start = int(cursor or 0)
        found = await self._run("list_jobs", queue, state=state.value, start=start, limit=limit)
        ids = tuple(raw.decode() for raw in found)
        return JobPage(ids[:limit], str(start + limit) if len(ids) > limit else None)

    async def stats(self, queue: QueueName) -> QueueStats:
        return read_stats(await self._run("stats", queue))

    async def queues(self) -> tuple[QueueName, ...]:
        found = await self.transport.command("SMEMBERS", REGISTRY)
        return tuple(sorted(QueueName.parse(raw.decode()) for raw in found))

    async def close(self) -> None:
        self._opened.clear()
        await self.transport.close()

    async def wait_for_document(self, queue: QueueName, timeout: timedelta) -> bytes | None:
        inbox, intake = queue_key(queue, "inbox"), queue_key(queue, "intake")
        return await self.transport.take(inbox, intake, timeout)

    async def intake(
        self,
        queue: QueueName,
        accepted: Sequence[AcceptedDocument],
        rejected: Sequence[RejectedDocument],
        *,
        more: int = 0,
    ) -> tuple[bytes, ...]:
        rest: list[Value] = []
        for found in accepted:
            job = found.job
            rest += (found.raw, job.id, found.body, job.priority, _due_ms(job))
        for refused in rejected:
            rest += (refused.raw, refused.id, refused.error)
        moved: list[bytes] = await self._run(
            "intake", queue, rest, accepted=len(accepted), rejected=len(rejected), more=more
        )
        return tuple(moved)

    async def stranded(self, queue: QueueName, limit: int) -> tuple[bytes, ...]:
        return tuple(await self._run("stranded", queue, limit=limit))

    async def exchange(self, queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        rest: list[Value] = []
        for found in request.settlements:
            outcome = found.outcome
            rest += (found.id, found.token, outcome.kind.value, outcome.delay // _MS)
            rest.append(outcome.detail)
        for task, (count, seconds) in request.served.items():
            rest += (task, count, seconds * 1000)
        limits = self._limits_of(queue)
        reply = await self._run(
            "exchange",
            queue,
            rest,
            incarnation=request.incarnation,
            sequence=request.sequence,
            want=request.want,
            woken=int(request.woken),
            lease_ms=limits.lease // _MS,
            poison_cap=limits.poison_cap,
            release_cap=limits.release_cap,
            keep_succeeded_ms=limits.keep_succeeded // _MS,
            keep_dead_ms=limits.keep_dead // _MS,
            keep_count=limits.keep_count,
            batch=BATCH,
            settled=len(request.settlements),
            served=len(request.served),
        )
        if reply[0] == b"stale":
            raise StaleRequestError(
                f"exchange {request.sequence} of {request.incarnation} came after {reply[1]}"
            )
        return read_exchange(reply, f"{request.incarnation}:{request.sequence}")

    async def renew(
        self, queue: QueueName, incarnation: str, leases: Sequence[tuple[str, str]]
    ) -> RenewReply:
        rest = [value for lease in leases for value in lease]
        due, documents, lost, cancel, draining = await self._run(
            "renew",
            queue,
            rest,
            incarnation=incarnation,
            lease_ms=self._limits_of(queue).lease // _MS,
        )
        return RenewReply(
            lost=tuple(raw.decode() for raw in lost),
            cancel=tuple(raw.decode() for raw in cancel),
            next_due=read_wait(due),
            intake=documents,
            draining=bool(draining),
        )

    async def beat(self, queue: QueueName, presence: Presence, *, ttl: timedelta) -> None:
        document = json.dumps(presence.document)
        await self._run(
            "beat",
            queue,
            incarnation=presence.incarnation,
            document=document,
            ttl_ms=ttl // _MS,
        )

    async def leave(self, queue: QueueName, incarnation: str) -> None:
        await self._run("leave", queue, incarnation=incarnation)

    async def workers(self, queue: QueueName) -> tuple[Presence, ...]:
        found = await self._run("workers", queue)
        presences = [
            Presence(found[i].decode(), from_ms(found[i + 1]), json.loads(found[i + 2]))
            for i in range(0, len(found), 3)
        ]
        return tuple(sorted(presences, key=lambda presence: presence.incarnation))

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
        given_back, buried, due = reaped
        return UpkeepReply(promoted, given_back, buried, pruned, read_wait(due))

    async def gather(self, queue: QueueName, *, horizon: timedelta) -> QueueLoad:
        return read_load(await self._run("gather", queue, horizon_ms=horizon // _MS))

    async def drain(
        self, queue: QueueName, term: int, candidates: Sequence[str], count: int, *, ttl: timedelta
    ) -> tuple[CordonedWorker, ...]:
        reply = await self._run(
            "drain", queue, candidates, term=term, count=count, ttl_ms=ttl // _MS
        )
        pairs = _fenced(queue, term, reply)
        return tuple(
            CordonedWorker(name.decode(), leases)
            for name, leases in zip(pairs[::2], pairs[1::2], strict=True)
        )

    async def take_term(self, queue: QueueName) -> int:
        term: int = await self._run("take_term", queue)
        return term

    async def lead(self, queue: QueueName, holder: str, ttl: timedelta) -> int | None:
        term: int = await self._run("lead", queue, holder=holder, ttl_ms=ttl // _MS)
        return None if term < 0 else term

    async def resign(self, queue: QueueName, holder: str) -> None:
        await self._run("resign", queue, holder=holder)

    async def admit_cron(
        self, queue: QueueName, term: int, uid: str, fingerprint: str, start: int, *, reset: bool
    ) -> CronRecord:
        reply = await self._run(
            "admit_cron",
            queue,
            term=term,
            uid=uid,
            fingerprint=fingerprint,
            start=start,
            reset=int(reset),
        )
        return read_cron(uid, _fenced(queue, term, reply))

    async def decide_fires(
        self, queue: QueueName, term: int, requests: Sequence[FireRequest]
    ) -> tuple[Verdict | FireAnswer, ...]:
        answers: list[Verdict | FireAnswer] = []
        for start in range(0, len(requests), FIRES_PER_SCRIPT):
            rest: list[Value] = []
            for request in requests[start : start + FIRES_PER_SCRIPT]:
                rest += _fire_arguments(request)
            reply = await self._run("decide_fire", queue, rest, term=term)
            for raw in _fenced(queue, term, reply):
                text = raw.decode()
                answers.append(Verdict(text) if text in _VERDICTS else FireAnswer(text))
        return tuple(answers)

    async def run_now(
        self, queue: QueueName, term: int | None, uid: str, nonce: str, job: Job
    ) -> bool:
        reply = await self._run(
            "run_now",
            queue,
            term="" if term is None else term,
            uid=uid,
            nonce=nonce,
            job_id=job.id,
            body=job.encode(),
            priority=job.priority,
        )
        return bool(_fenced(queue, term or 0, reply))

    async def put_crontasks(
        self, queue: QueueName, term: int, documents: Mapping[str, bytes]
    ) -> None:
        rest = [value for pair in documents.items() for value in pair]
        _fenced(queue, term, await self._run("put_crontasks", queue, rest, term=term))

    async def crontasks(self, queue: QueueName) -> Mapping[str, Any]:
        found = await self.transport.command("HGETALL", queue_key(queue, "crontasks"))
        return {uid.decode(): json.loads(raw) for uid, raw in sorted(found.items())}

    async def cron_record(self, queue: QueueName, uid: str) -> CronRecord | None:
        found = await self._run("cron_record", queue, uid=uid)
        return None if found is None else read_cron(uid, found)


def _fire_arguments(request: FireRequest) -> tuple[Value, ...]:
    job = request.job
    head: tuple[Value, ...] = (
        request.uid,
        request.fingerprint,
        request.fire,
        request.wanted.value,
        request.policy.value,
        "" if request.max_runs is None else request.max_runs,
    )
    if job is None:
        return (*head, "", b"", "", "")
    return (*head, job.id, job.encode(), job.priority, _due_ms(job))


_VERDICTS = frozenset(verdict.value for verdict in Verdict)


def _fenced(queue: QueueName, term: int, reply: Any) -> Any:
    if reply[0] == b"stale":
        raise StaleTermError(str(queue), term, reply[1])
    return reply[1]
