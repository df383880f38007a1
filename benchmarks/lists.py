"""``python -m benchmarks.lists``: how long lists of the HTTP API take at the server, when full.

100,000 jobs that succeeded, 10,000 dead letters of 20 errors, 100,000 that wait. The application is
asked in its own process, without a socket.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator

import httpx

from tests.support.servers import ValkeyServer
from tidework.access.access import Everybody
from tidework.access.caller import Permission
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest, QueueLimits, Settlement
from tidework.model.outcome import JobError, Outcome

QUEUE = QueueName("default", "emails")
SUCCEEDED, DEAD, WAITING = 100_000, 10_000, 100_000
BATCH = 1000
ROUNDS = 40
PATHS = (
    "/queues",
    "/queues/emails",
    "/queues/emails/jobs",
    "/queues/emails/jobs?state=succeeded",
    "/queues/emails/jobs?state=dead&limit=500",
    "/queues/emails/jobs?state=ready&task=rare",
    "/queues/emails/jobs?state=succeeded&task=rare",
    "/queues/emails/jobs?state=ready&text=nothing-has-this",
    "/queues/emails/jobs?state=dead&text=nothing-has-this",
    "/dead/errors",
    "/queues/emails/tasks",
    "/stats?queue=emails",
    "/workers",
    "/scaling/emails",
    "/crontasks",
    "/jobs/emails/w50000",
    "/jobs/emails/w50000/why",
)


def jobs(prefix: str, count: int) -> Iterator[list[Job]]:
    """So many, in batches."""
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        yield [
            Job(f"{prefix}{n}", f"task-{n % 10}", {"to": f"{n}@example.com"}, created_at=1.7e9)
            for n in numbers
        ]


async def run(broker: RedisBroker, prefix: str, count: int) -> None:
    """Enqueue, claim and end them: those called d with one of 20 errors."""
    sequence = 0
    for batch in jobs(prefix, count):
        await broker.enqueue(QUEUE, batch)
        settled: tuple[Settlement, ...] = ()
        for want in (BATCH, 0):
            sequence += 1
            request = ExchangeRequest(f"w-{prefix}", sequence, want, settled)
            reply = await broker.exchange(QUEUE, request)
            settled = tuple(
                Settlement(job.id, job.token, outcome(prefix, n))
                for n, job in enumerate(reply.claimed)
            )


def outcome(prefix: str, number: int) -> Outcome:
    """How a job ends."""
    if prefix == "s":
        return Outcome.complete()
    return Outcome.bury(
        JobError(f"Error{number % 20}", "the mail server did not answer", "x" * 500)
    )


async def measure(url: str) -> None:
    """Fill the queue, ask, print."""
    broker = connect(url, QueueLimits(keep_count=1_000_000))
    await broker.open_queue(QUEUE)
    await run(broker, "s", SUCCEEDED)
    await run(broker, "d", DEAD)
    for batch in jobs("w", WAITING):
        await broker.enqueue(QUEUE, batch)
    app = create_api(ApiContext(broker, Everybody(Permission.ADMIN)))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test/api/v1") as client:
        print("| list | p50 ms | p95 ms |\n| --- | ---: | ---: |")
        for path in PATHS:
            times = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                answer = await client.get(path)
                times.append(1000 * (time.perf_counter() - began))
                answer.raise_for_status()
            cuts = statistics.quantiles(times, n=20)
            print(f"| `{path}` | {cuts[9]:.1f} | {cuts[18]:.1f} |")
    await broker.close()


if __name__ == "__main__":
    with ValkeyServer() as server:
        asyncio.run(measure(server.url))
