"""A queue with a past, a broker beside the proxy and one behind it, and steps that tests take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import redis

from tests.integration.broker.queue_dump import Dump, dump_queue, scored
from tests.support.proxy import Proxy
from tidework.broker.documents import MARKER, AcceptedDocument, RejectedDocument
from tidework.broker.keys import REGISTRY
from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.intake import read_document
from tidework.model.backlog import Presence
from tidework.model.fire import ConcurrencyPolicy, FireRequest, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeReply, ExchangeRequest, QueueLimits, Settlement
from tidework.model.outcome import JobError, Outcome

LIMITS = QueueLimits(lease=timedelta(seconds=60))
"""Nothing happens by itself while a test looks."""
FAR = 4_000_000_000.0
MINUTE = timedelta(minutes=1)
TERM = 1
"""Of the leader that the queue has."""


class Rig:
    """One queue on one server.

    broker:  beside the proxy
    through: behind it; its requests are what gets lost
    client:  for a look at the keys
    letter:  id of a document that a step had refused
    """

    def __init__(self, url: str, proxy: Proxy, client: redis.Redis, queue: QueueName) -> None:
        self.proxy = proxy
        self.queue = queue
        self.client = client
        self.broker = connect(url, LIMITS)
        self.through = connect(proxy.url, LIMITS)
        self.letter = ""
        self.url = url
        self._read: dict[bytes, AcceptedDocument | RejectedDocument] = {}

    async def dump(self) -> Dump:
        """The queue as it is."""
        return await dump_queue(self.broker, self.client, self.queue)

    async def close(self) -> None:
        """Give back connections."""
        await self.broker.close()
        await self.through.close()

    async def put(self, *jobs: Job) -> None:
        """Enqueue."""
        await self.broker.enqueue(self.queue, jobs)

    def put_document(self, raw: bytes) -> None:
        """What a foreign program does."""
        self.client.lpush(f"tw1:{{{self.queue}}}:inbox", raw)

    async def intake(
        self, broker: RedisBroker, *raws: bytes, more: int = 0, full: bool = False
    ) -> tuple[bytes, ...]:
        """Take documents in. A repetition gives them the same ids, as a copy of a request does."""
        found = [self._read.setdefault(raw, read_document(raw, 1.0)) for raw in raws]
        accepted = [each for each in found if isinstance(each, AcceptedDocument)]
        rejected = [each for each in found if isinstance(each, RejectedDocument)]
        return await broker.intake(self.queue, accepted, rejected, more=more, full=full)

    async def take_document(self) -> bytes:
        """The next document, out of the inbox and in intake."""
        while True:
            found = await self.broker.wait_for_document(self.queue, timedelta(seconds=5))
            assert found is not None
            if found != MARKER:
                return found

    async def exchange(
        self, worker: str, sequence: int, want: int = 0, *settlements: Settlement
    ) -> ExchangeReply:
        """One exchange, beside the proxy."""
        request = ExchangeRequest(worker, sequence, want, settlements)
        return await self.broker.exchange(self.queue, request)

    async def end(self, worker: str, sequence: int, *ids: str, of: int) -> None:
        """The worker's exchange ``sequence`` completes jobs that exchange ``of`` claimed."""
        done = [settle(job_id, worker, of) for job_id in ids]
        assert (await self.exchange(worker, sequence, 0, *done)).refused == ()

    async def prune_now(self) -> None:
        """Retention is over for whatever has ended."""
        zero = timedelta(0)
        broker = connect(self.url, QueueLimits(LIMITS.lease, keep_succeeded=zero, keep_dead=zero))
        await broker.upkeep(self.queue)
        await broker.close()

    async def forget(self, part: str) -> None:
        """Delete a part of the queue, as an expiry or a mishap would."""
        self.client.delete(f"tw1:{{{self.queue}}}:{part}")

    async def be_unknown(self) -> None:
        """Leave the list of all queues."""
        self.client.srem(REGISTRY, str(self.queue))

    async def let_leases_end(self) -> None:
        """The leases of the running jobs are over, as if their worker had died."""
        key = f"tw1:{{{self.queue}}}:leases"
        for job_id in scored(self.client, key):
            self.client.zadd(key, {job_id: 1})

    async def let_retention_end(self) -> None:
        """Whatever has ended did so long ago."""
        for state in ("succeeded", "dead"):
            key = f"tw1:{{{self.queue}}}:{state}"
            for job_id in scored(self.client, key):
                self.client.zadd(key, {job_id: 1})

    async def let_come_due(self, job_id: str) -> None:
        """The scheduled job is due, as if time had passed."""
        self.client.zadd(f"tw1:{{{self.queue}}}:scheduled", {job_id: 15})

    async def fill(self) -> None:
        """Something of everything, so that whatever a request should not touch is there."""
        await self.broker.open_queue(self.queue)
        assert await self.broker.lead(self.queue, "boss", MINUTE) == TERM
        await self.broker.put_crontasks(self.queue, TERM, {"c0": b"{}"})
        await self.admit("c0")
        await self.broker.decide_fires(self.queue, TERM, [fire("c0", 1000)])
        await self.put(job("done"), job("dead"), job("running"))
        await self.exchange("old", 1, 4)
        bury = Settlement("dead", "old:1", Outcome.bury(JobError("E", "m")))
        await self.exchange("old", 2, 0, settle("done", "old", 1), bury)
        await self.beat("old", busy=2)
        await self.put(job("ready1"), job("ready2"), job("later", available_at=FAR))

    async def admit(self, uid: str, fingerprint: str = "f", start: int = 900) -> None:
        """A record for the CronTask."""
        await self.broker.admit_cron(self.queue, TERM, uid, fingerprint, start, reset=False)

    async def fire(self, uid: str, at: int, policy: ConcurrencyPolicy) -> None:
        """One fire, beside the proxy."""
        await self.broker.decide_fires(self.queue, TERM, [fire(uid, at, policy)])

    async def beat(self, worker: str, *, busy: int) -> None:
        """A worker says something of itself."""
        await self.broker.beat(self.queue, presence(worker, busy), ttl=MINUTE)


Step = Callable[[Rig], Awaitable[object]]
Request = Callable[[Rig, RedisBroker], Awaitable[object]]


async def nothing(rig: Rig) -> None:
    """The step of a row that needs none."""


@dataclass(frozen=True, slots=True)
class Row:
    """One request that changes a queue.

    script: its name; title: what is special
    before: what has to be there
    call:   the request, always the same
    newer:  what its caller and others do after it, before a copy of it arrives late
    heal:   what ends the trace that a late copy leaves; skips: parts that it may leave for good
    reason: why that is good enough; told with ``heal`` and ``skips``
    unseen: it changes nothing but times that a repetition may move on
    alike:  what of its reply is the same when it is repeated; None = nothing has to be
    """

    script: str
    title: str
    call: Request
    before: Step = nothing
    newer: Step = nothing
    heal: Step = nothing
    skips: frozenset[str] = frozenset()
    reason: str = ""
    unseen: bool = False
    alike: Callable[[Any], object] | None = None

    def __post_init__(self) -> None:
        assert (self.heal is nothing and not self.skips) == (self.reason == ""), "say why"

    def __str__(self) -> str:
        return f"{self.script}: {self.title}"


def job(name: str, **fields: Any) -> Job:
    """Its task is known to nobody, and nobody asks."""
    return Job(name, "t", {"n": 1}, created_at=1.0, **fields)


def settle(job_id: str, worker: str, of: int, outcome: Outcome | None = None) -> Settlement:
    """The end of a job that exchange ``of`` of the worker claimed."""
    return Settlement(job_id, f"{worker}:{of}", outcome or Outcome.complete())


def fire(uid: str, at: int, policy: ConcurrencyPolicy = ConcurrencyPolicy.ALLOW) -> FireRequest:
    """A fire that wants to enqueue."""
    return FireRequest(uid, "f", at, Verdict.ENQUEUED, policy, job=job(f"{uid}-{at}"))


def presence(worker: str, busy: int) -> Presence:
    """What a worker says of itself."""
    return Presence(worker, datetime.fromtimestamp(0, UTC), {"busy": busy})
