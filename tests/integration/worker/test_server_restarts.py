"""The server dies, stands still, forgets, or its replies are lost, under workers that work.

What ran is what the jobs themselves wrote down: each exactly once, whatever happened.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.ledger import Ledger
from tests.integration.worker.processes import WorkerProcess
from tests.support.fixtures import redis_server
from tests.support.proxy import Fate, Proxy
from tests.support.servers import SURE, ValkeyServer, redis_binary
from tidework.client import Client
from tidework.settings import Settings

__all__ = ["redis_server"]

LEASE_S = 2.0


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[ValkeyServer]:
    """A server that may be killed: Valkey, or whatever the test asks for."""
    with ValkeyServer(getattr(request, "param", None), *SURE) as found:
        yield found


@pytest.fixture
def ledger(server: ValkeyServer, namespace: str, folder: Path) -> Ledger:
    settings = Settings(redis_url=server.url, namespace=namespace)
    return Ledger(folder, Jobs(Client(settings)))


@pytest.mark.parametrize("server", [None, redis_binary()], ids=["valkey", "redis"], indirect=True)
def test_a_killed_server_costs_no_job_and_no_second_run(
    server: ValkeyServer, ledger: Ledger, start_worker: StartWorker
) -> None:
    given = {"redis_url": server.url, "slots": 4, "lease_seconds": LEASE_S}
    workers = [start_worker("ledger", **given) for _ in range(2)]
    ids = ledger.put(4, until="first") + ledger.put(4, until="second")
    ledger.wait("began", 8)
    ids += ledger.put(40)
    server.kill()
    ledger.let_end("first")
    ledger.wait("ended", 4)
    time.sleep(LEASE_S * 1.2)  # all leases are over when the server comes back

    server.restart()
    ledger.let_end("second")

    ledger.expect_each_once(ids)
    assert all(worker.process.poll() is None for worker in workers)


@pytest.mark.timeout(240)
def test_a_server_that_stands_still_for_a_minute_costs_no_job_and_no_second_run(
    server: ValkeyServer, ledger: Ledger, start_worker: StartWorker
) -> None:
    for _ in range(2):
        start_worker("ledger", redis_url=server.url, slots=4, lease_seconds=12)
    ids = ledger.put(8, seconds=70)
    ledger.wait("began", 8)
    ids += ledger.put(8)

    server.freeze()
    time.sleep(60)  # five leases
    server.thaw()

    ledger.expect_each_once(ids, 60)


async def test_a_server_that_forgets_its_scripts_before_every_request(
    server: ValkeyServer, ledger: Ledger, start_worker: StartWorker
) -> None:
    async with Proxy(server.port) as proxy:
        with server.client() as client:

            async def forget(_: str) -> None:
                client.script_flush()

            proxy.before_each = forget
            worker = start_worker("ledger", redis_url=proxy.url, slots=4, lease_seconds=LEASE_S)
            ids = await asyncio.to_thread(ledger.put, 60)
            await asyncio.to_thread(ledger.expect_each_once, ids)
            await end(worker)


async def test_every_third_reply_and_some_requests_are_lost(
    server: ValkeyServer, ledger: Ledger, start_worker: StartWorker
) -> None:
    async with Proxy(server.port) as proxy:
        for name in ("exchange", "renew", "intake", "stranded", "beat", "blmove", "open_queue"):
            for nth in range(1, 500):
                if nth % 3 == 0:
                    proxy.catch(name, Fate.LOSE_REPLY, nth=nth)
                elif nth % 5 == 0:
                    proxy.catch(name, Fate.LOSE_REQUEST, nth=nth)
        worker = start_worker("ledger", redis_url=proxy.url, slots=4, lease_seconds=LEASE_S)
        ids = await asyncio.to_thread(ledger.put, 30)
        with server.client() as foreign:
            for number in range(30):
                ids.append(f"foreign-{number}")
                foreign.lpush(ledger.inbox, ledger.document(ids[-1]))
        await asyncio.to_thread(ledger.expect_each_once, ids)
        await end(worker)
        assert proxy.seen["exchange"] > 3
    counted = await asyncio.to_thread(ledger.jobs.totals)
    assert (counted.enqueued, counted.succeeded, counted.failed) == (60, 60, 0)
    assert counted.run.count == 60
    assert counted.started == 60 + counted.released + counted.lost


@pytest.mark.parametrize("fate", [Fate.LOSE_REPLY, Fate.SWALLOW_REPLY])
async def test_a_document_whose_blmove_reply_is_lost_is_delivered_by_another_worker(
    server: ValkeyServer, ledger: Ledger, start_worker: StartWorker, fate: Fate
) -> None:
    async with Proxy(server.port) as proxy:
        first = start_worker("ledger", redis_url=proxy.url, lease_seconds=LEASE_S)
        await asyncio.to_thread(first.wait_started)
        caught = proxy.catch("blmove", fate)
        await caught.asked.wait()
        with server.client() as foreign:
            foreign.lpush(ledger.inbox, ledger.document("lost"))
        await caught.answered.wait()
        first.process.kill()
        first.wait()
        assert ledger.document("lost") in caught.reply
        assert not ledger.runs("began")

    start_worker("ledger", redis_url=server.url, lease_seconds=LEASE_S)

    await asyncio.to_thread(ledger.expect_each_once, ["lost"])


async def test_a_worker_that_lost_a_document_on_its_way_finds_it_again(
    server: ValkeyServer, ledger: Ledger, start_worker: StartWorker
) -> None:
    async with Proxy(server.port) as proxy:
        worker = start_worker("ledger", redis_url=proxy.url, lease_seconds=LEASE_S)
        await asyncio.to_thread(worker.wait_started)
        caught = proxy.catch("blmove", Fate.LOSE_REPLY)
        await caught.asked.wait()
        with server.client() as foreign:
            foreign.lpush(ledger.inbox, ledger.document("lost"))
        await caught.answered.wait()

        await asyncio.to_thread(ledger.expect_each_once, ["lost"])
        await end(worker)


async def end(worker: WorkerProcess) -> None:
    """In order, while the proxy is still there."""
    worker.signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait) == 0
