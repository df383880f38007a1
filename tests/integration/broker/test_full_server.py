"""A server at maxmemory under noeviction refuses what adds work and does what ends it.

Also when it has just forgotten every script: then the text is sent, and has to be taken.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.forgetful import Forgetful
from tests.support.servers import ValkeyServer, redis_binary
from tests.support.waiting import until
from tidework.broker.connection.transport import AsyncTransport, BlockingTransport, Transport, drive
from tidework.broker.documents import AcceptedDocument, RejectedDocument
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.errors import BrokerFullError
from tidework.intake import read_document
from tidework.maintenance.upkeep import Upkeep
from tidework.model.fire import FireRequest, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import ClaimedJob, ExchangeRequest, QueueLimits, Settlement
from tidework.model.outcome import JobError, Outcome

QUEUE = QueueName("shop", "emails")
LEASE = timedelta(seconds=1)


@pytest.fixture(params=["valkey", "redis"])
def server(request: pytest.FixtureRequest) -> Iterator[ValkeyServer]:
    binary: Path | None = redis_binary() if request.param == "redis" else None
    if request.param == "redis" and binary is None:
        pytest.skip("redis-server is not on the PATH")
    with ValkeyServer(binary) as found:
        yield found


@pytest.fixture(params=["known", "forgotten"])
async def broker(
    request: pytest.FixtureRequest, server: ValkeyServer
) -> AsyncIterator[RedisBroker]:
    """Its scripts are known to the server, or forgotten before every call."""
    transport: Transport = AsyncTransport(server.url)
    if request.param == "forgotten":
        transport = Forgetful(transport)
    found = RedisBroker(transport, QueueLimits(lease=LEASE))
    yield found
    await found.close()


def fill(server: ValkeyServer) -> None:
    with server.client() as client:
        client.config_set("maxmemory", 1)


def job(name: str) -> Job:
    return Job(name, "t", {})


async def claim(broker: RedisBroker, count: int) -> dict[str, ClaimedJob]:
    reply = await broker.exchange(QUEUE, ExchangeRequest("w", 1, count))
    return {found.id: found for found in reply.claimed}


def settlement(found: ClaimedJob, outcome: Outcome) -> Settlement:
    return Settlement(found.id, found.token, outcome)


async def test_new_work_is_refused_and_what_runs_is_finished(
    server: ValkeyServer, broker: RedisBroker
) -> None:
    await broker.enqueue(QUEUE, [job(f"j{number}") for number in range(8)])
    held = await claim(broker, 4)
    fill(server)

    with pytest.raises(BrokerFullError, match=r"out of memory.*raise its maxmemory"):
        await broker.enqueue(QUEUE, [job("more")])
    leases = [(found.id, found.token) for found in held.values()]
    assert (await broker.renew(QUEUE, "w", leases)).lost == ()
    ends = (
        settlement(held["j0"], Outcome.complete(b"1")),
        settlement(held["j1"], Outcome.retry(JobError("E", "m"), timedelta(hours=1))),
        settlement(held["j2"], Outcome.bury(JobError("E", "m"))),
        settlement(held["j3"], Outcome.release()),
    )
    reply = await broker.exchange(QUEUE, ExchangeRequest("w", 2, 2, ends))
    assert (reply.refused, len(reply.claimed)) == ((), 2)
    assert await broker.cancel(QUEUE, "j7") == "cancelled"
    assert await broker.cancel(QUEUE, reply.claimed[0].id) == "requested"

    assert await broker.get_job(QUEUE, "more") is None
    states = (await broker.stats(QUEUE)).states
    assert {state: states[state] for state in JobState if states[state]} == {
        JobState.SUCCEEDED: 1,
        JobState.SCHEDULED: 1,
        JobState.DEAD: 1,
        JobState.RUNNING: 2,
        JobState.READY: 2,
        JobState.CANCELLED: 1,
    }


async def test_a_dead_workers_job_comes_back(server: ValkeyServer, broker: RedisBroker) -> None:
    await broker.enqueue(QUEUE, [job("a")])
    await claim(broker, 1)
    fill(server)

    async def reap() -> int:
        return (await broker.upkeep(QUEUE)).reaped

    await until(reap, "its lease expires", 30)

    reply = await broker.exchange(QUEUE, ExchangeRequest("v", 1, 1))
    assert [(found.id, found.losses) for found in reply.claimed] == [("a", 1)]


async def test_a_worker_that_starts_meanwhile_works(
    server: ValkeyServer, broker: RedisBroker
) -> None:
    await broker.enqueue(QUEUE, [job("a")])
    fill(server)
    fresh = RedisBroker(AsyncTransport(server.url))
    try:
        await fresh.open_queue(QUEUE)
        (found,) = (await fresh.exchange(QUEUE, ExchangeRequest("v", 1, 1))).claimed
        ends = (settlement(found, Outcome.complete()),)
        assert (await fresh.exchange(QUEUE, ExchangeRequest("v", 2, 0, ends))).refused == ()
    finally:
        await fresh.close()


def test_a_program_without_an_event_loop_is_told_so(server: ValkeyServer) -> None:
    broker = RedisBroker(BlockingTransport(server.url))
    drive(broker.enqueue(QUEUE, [job("a")]))
    for forget in (False, True):
        with server.client() as client:
            if forget:
                client.script_flush()
            client.config_set("maxmemory", 1)
        with pytest.raises(BrokerFullError):
            drive(broker.enqueue(QUEUE, [job("b")]))
        assert drive(broker.cancel(QUEUE, "a")) == ("finished" if forget else "cancelled")
    drive(broker.close())


async def test_acknowledged_documents_are_let_in_and_new_ones_are_not(
    server: ValkeyServer, broker: RedisBroker
) -> None:
    await broker.open_queue(QUEUE)
    documents = [b'{"id":"d%d","task":"t"}' % number for number in range(4)] + [b"nonsense"]
    with server.client() as foreign:
        foreign.lpush(f"tw1:{{{QUEUE}}}:inbox", *documents)
    assert await broker.intake(QUEUE, (), (), more=1) == (documents[0],)
    fill(server)

    with pytest.raises(BrokerFullError):
        await broker.wait_for_document(QUEUE, timedelta(seconds=1))
    with pytest.raises(BrokerFullError):
        await broker.intake(QUEUE, (), (), more=1)
    assert await broker.stranded(QUEUE, 9) == (documents[0],)
    assert await broker.intake(QUEUE, (), (), more=9, full=True) == tuple(documents[1:])
    found = [read_document(raw, 1.0) for raw in documents]
    accepted = [each for each in found if isinstance(each, AcceptedDocument)]
    rejected = [each for each in found if isinstance(each, RejectedDocument)]
    await broker.intake(QUEUE, accepted, rejected, full=True)

    stats = await broker.stats(QUEUE)
    assert (stats.states[JobState.READY], stats.states[JobState.DEAD], stats.inbox) == (4, 1, 0)
    assert set(await claim(broker, 9)) == {"d0", "d1", "d2", "d3"}


async def test_upkeep_takes_in_a_batch_where_no_worker_is(
    server: ValkeyServer, broker: RedisBroker
) -> None:
    await broker.open_queue(QUEUE)
    late = b'{"id":"late","task":"t","available_at":4000000000}'
    with server.client() as foreign:
        foreign.lpush(f"tw1:{{{QUEUE}}}:inbox", late, late, b"nonsense")
    fill(server)
    upkeep = Upkeep(broker, lambda: [QUEUE])

    for _ in range(2):
        await upkeep.tick()

    assert (await broker.gather(QUEUE, horizon=LEASE)).backlog == 0
    stats = await broker.stats(QUEUE)
    assert (stats.states[JobState.SCHEDULED], stats.states[JobState.DEAD]) == (1, 1)


async def test_a_crontask_is_suspended_and_the_end_of_its_run_is_kept(
    server: ValkeyServer, broker: RedisBroker
) -> None:
    term = await broker.take_term(QUEUE)
    await broker.put_crontasks(QUEUE, term, {"c": b"{}"})
    await broker.admit_cron(QUEUE, term, "c", "f", 900, reset=False)
    fires = [FireRequest("c", "f", at, Verdict.ENQUEUED, job=job(f"c-{at}")) for at in (1000, 1001)]
    await broker.decide_fires(QUEUE, term, fires[:1])
    held = (await claim(broker, 1))["c-1000"]
    fill(server)

    with pytest.raises(BrokerFullError):
        await broker.decide_fires(QUEUE, term, fires[1:])
    assert await broker.suspend_cron(QUEUE, "c", by="ann", reason="Redis is full") is not None
    end = settlement(held, Outcome.complete())
    await broker.exchange(QUEUE, ExchangeRequest("w", 2, 0, (end,)))

    (run,) = await broker.fires(QUEUE, "c")
    assert run.outcome is JobState.SUCCEEDED
    assert await broker.resume_cron(QUEUE, "c") is not None
