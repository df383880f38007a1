"""What leaders write through the Broker on Redis: every call carries its term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import count as count_from

from tidework.broker.redis.calls import RedisCalls, due_ms, fenced
from tidework.broker.redis.replies import (
    read_cron,
)
from tidework.broker.redis.stored import stored_body
from tidework.broker.scripts import Value
from tidework.model.durability import Durability
from tidework.model.fire import CronRecord, FireAnswer, FireRequest, Verdict, one_line
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import (
    CordonedWorker,
)
from tidework.model.scaled import Scaled

FIRES_PER_SCRIPT = 50
"""More would keep the server busy for longer than its other clients like."""

_MS = timedelta(milliseconds=1)
_sequences = count_from(1)
"""Of this process's writes: a term belongs to one process."""


class RedisLeading(RedisCalls):
    """The fenced writes of the RedisBroker."""

    async def drain(
        self, queue: QueueName, term: int, candidates: Sequence[str], count: int, *, ttl: timedelta
    ) -> tuple[CordonedWorker, ...]:
        reply = await self._run(
            "drain",
            queue,
            candidates,
            term=term,
            sequence=next(_sequences),
            count=count,
            ttl_ms=ttl // _MS,
        )
        pairs = fenced(queue, term, reply)
        return tuple(
            CordonedWorker(name.decode(), leases)
            for name, leases in zip(pairs[::2], pairs[1::2], strict=True)
        )

    async def configure(self, queue: QueueName, term: int, durability: Durability) -> None:
        reply = await self._run(
            "configure",
            queue,
            term=term,
            sequence=next(_sequences),
            durability=durability.value,
        )
        fenced(queue, term, reply)
        self._opened.pop(queue, None)

    async def note_scaling(
        self, queue: QueueName, term: int, scaled: Scaled, *, is_step: bool
    ) -> None:
        reply = await self._run(
            "note_scaling",
            queue,
            term=term,
            sequence=next(_sequences),
            document=scaled.encode(),
            is_step=int(is_step),
        )
        fenced(queue, term, reply)

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
        return read_cron(uid, fenced(queue, term, reply))

    async def decide_fires(
        self, queue: QueueName, term: int, requests: Sequence[FireRequest]
    ) -> tuple[Verdict | FireAnswer, ...]:
        answers: list[Verdict | FireAnswer] = []
        for start in range(0, len(requests), FIRES_PER_SCRIPT):
            rest: list[Value] = []
            for request in requests[start : start + FIRES_PER_SCRIPT]:
                rest += _fire_arguments(request)
            reply = await self._write("decide_fire", queue, rest, term=term)
            for raw in fenced(queue, term, reply):
                text = raw.decode()
                answers.append(Verdict(text) if text in _VERDICTS else FireAnswer(text))
        return tuple(answers)

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
        reply = await self._write(
            "run_now",
            queue,
            term="" if term is None else term,
            uid=uid,
            nonce=nonce,
            job_id=job.id,
            body=stored_body(job.task, job.id, job.encode()),
            priority=job.priority,
            note=one_line(note),
        )
        return bool(fenced(queue, term or 0, reply))

    async def put_crontasks(
        self, queue: QueueName, term: int, documents: Mapping[str, bytes]
    ) -> None:
        rest = [value for pair in documents.items() for value in pair]
        reply = await self._run("put_crontasks", queue, rest, term=term, sequence=next(_sequences))
        fenced(queue, term, reply)


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
    return (*head, job.id, stored_body(job.task, job.id, job.encode()), job.priority, due_ms(job))


_VERDICTS = frozenset(verdict.value for verdict in Verdict)
