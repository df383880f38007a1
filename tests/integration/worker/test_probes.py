"""Probes while things are out of order: /livez is false only if the worker cannot mend itself."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import APPS, WorkerProcess
from tests.support.logs import lines
from tests.support.proxy import Proxy
from tests.support.servers import ValkeyServer
from tests.support.waiting import until, wait_until
from tidework.client import Client
from tidework.probes import ProbeServer
from tidework.settings import Settings, WorkerSettings
from tidework.testing.memory.broker import MemoryBroker
from tidework.worker import health
from tidework.worker.supervisor import Supervisor

YES = (200, "ok\n")
ATTEMPTS_PER_SECOND = 10
"""Connections that a worker of one queue may try to make, on average. Without any pause it would
be hundreds."""


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as found:
        yield found


@pytest.fixture
def own_jobs(server: ValkeyServer, namespace: str) -> Jobs:
    return Jobs(Client(Settings(redis_url=server.url, namespace=namespace)))


def expect_alive_and_ready(worker: WorkerProcess) -> None:
    assert worker.probe("/livez") == YES
    assert worker.probe("/readyz") == YES
    status, page = worker.probe("/metrics")
    assert status == 200
    assert 'tidework_worker_slots{state="busy"} 1.0' in page


def wait_missed(worker: WorkerProcess) -> None:
    """Until requests to Redis have failed."""
    wait_until(lambda: worker.metric("tidework_redis_errors_total") > 0, "Redis is missed")


class Trouble:
    """A Redis that can be made unreachable in one way, and mended."""

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self.begin = begin
        self.end = end


def troubles(server: ValkeyServer, proxy: Proxy) -> dict[str, Trouble]:
    def drop(*, drops: bool) -> Callable[[], None]:
        return lambda: setattr(proxy, "drops", drops)

    return {
        "away": Trouble(server.sync_and_kill, server.restart),
        "paused": Trouble(server.freeze, server.thaw),
        "half-open": Trouble(drop(drops=True), drop(drops=False)),
    }


@pytest.mark.parametrize("kind", ["away", "paused", "half-open"])
async def test_without_redis_the_worker_is_alive_ready_and_measured(
    kind: str, server: ValkeyServer, start_worker: StartWorker, own_jobs: Jobs, folder: Path
) -> None:
    async with Proxy(server.port) as proxy:
        trouble = troubles(server, proxy)[kind]
        await asyncio.to_thread(play, trouble, start_worker, proxy.url, own_jobs, folder)


def play(
    trouble: Trouble, start_worker: StartWorker, url: str, own_jobs: Jobs, folder: Path
) -> None:
    worker = start_worker(redis_url=url).wait_started()
    job_id = own_jobs.put("hold", path=str(folder / "a"))
    wait_until((folder / "a.began").exists, "the job runs")
    trouble.begin()
    try:
        wait_missed(worker)
        expect_alive_and_ready(worker)
    finally:
        trouble.end()
    (folder / "a.go").touch()
    assert own_jobs.result(job_id) == "held"
    assert own_jobs.result(own_jobs.put("add", a=1, b=1)) == 2, "it works on"
    assert worker.probe("/livez") == YES


class Crowd:
    """Takes a server's place: every connection is accepted and ends at once. Counts them."""

    def __init__(self, port: int) -> None:
        self.count = 0
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(1024)
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.count += 1
            connection.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def test_attempts_to_reconnect_are_few(
    server: ValkeyServer, start_worker: StartWorker, own_jobs: Jobs, folder: Path
) -> None:
    worker = start_worker(redis_url=server.url, slots=4, lease_seconds=12).wait_started()
    ids = [own_jobs.put("hold", path=str(folder / name)) for name in ("a", "b")]
    wait_until((folder / "b.began").exists, "the jobs run")
    wait_until((folder / "a.began").exists, "the jobs run")
    server.sync_and_kill()
    crowd = Crowd(server.port)
    try:
        (folder / "a.go").touch()  # an outcome to settle, a lease to renew, an inbox to wait at
        worker.wait_event("job_succeeded")
        wait_missed(worker)
        before, began = crowd.count, time.monotonic()
        time.sleep(8)  # a rate is counted over some time
        rate = (crowd.count - before) / (time.monotonic() - began)
    finally:
        crowd.close()
        server.restart()

    assert 0 < rate <= ATTEMPTS_PER_SECOND
    (folder / "b.go").touch()
    assert [own_jobs.result(job_id) for job_id in ids] == ["held", "held"]


async def test_a_network_that_swallows_everything_brings_no_crowd_either(
    server: ValkeyServer, start_worker: StartWorker, own_jobs: Jobs, folder: Path
) -> None:
    async with Proxy(server.port) as proxy:

        def count() -> float:
            worker = start_worker(redis_url=proxy.url, lease_seconds=12).wait_started()
            own_jobs.put("hold", path=str(folder / "a"))
            wait_until((folder / "a.began").exists, "the job runs")
            proxy.drops = True
            (folder / "a.go").touch()
            wait_missed(worker)
            before, began = proxy.accepted, time.monotonic()
            time.sleep(8)  # a rate is counted over some time
            rate = (proxy.accepted - before) / (time.monotonic() - began)
            proxy.drops = False
            return rate

        assert await asyncio.to_thread(count) <= ATTEMPTS_PER_SECOND


def test_a_killed_child_that_nobody_reaps_is_no_life(
    start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker(hard_timeout_seconds=0.5).wait_started()
    template = worker.template()
    job_id = jobs.put("hold", path=str(folder / "a"))
    wait_until((folder / "a.began").exists, "the job runs")

    os.kill(template, signal.SIGSTOP)  # it is the children's parent
    try:
        wait_until(lambda: worker.probe("/livez")[0] == 503, "the verdict is not carried out")
        assert "a killed child has not ended" in worker.probe("/livez")[1]
        assert worker.probe("/readyz") == YES
    finally:
        os.kill(template, signal.SIGCONT)

    wait_until(lambda: worker.probe("/livez") == YES, "it has ended")
    wait_until(lambda: jobs.get(job_id).error is not None, "the attempt has failed")


@asynccontextmanager
async def supervised() -> AsyncIterator[tuple[Supervisor, int]]:
    """A supervisor in this process, and the port of its probes."""
    settings = WorkerSettings(app="hostile", namespace="here", queue=("jobs",))
    supervisor = Supervisor(settings, MemoryBroker())
    probes = ProbeServer("127.0.0.1", 0, supervisor.health)
    running = asyncio.ensure_future(supervisor.run())
    try:
        await until(lambda: not supervisor.health.readyz(), "it is ready")
        yield supervisor, probes.port
    finally:
        supervisor.stop.ask("the test")
        await asyncio.wait_for(running, 20)
        probes.close()


def ask(port: int, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def test_a_loop_that_is_stuck_is_no_life(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(APPS), prepend=os.pathsep)
    monkeypatch.setattr(health, "TURN_WITHIN", 2.0)
    seen: list[tuple[int, str]] = []

    def get_stuck(port: int) -> None:
        """In a callback of the loop, until a probe has told so."""

        def look() -> None:
            wait_until(lambda: ask(port, "/livez")[0] == 503, "it is told")
            seen.extend(ask(port, path) for path in ("/livez", "/livez", "/readyz", "/metrics"))

        looking = threading.Thread(target=look)
        looking.start()
        looking.join()

    async with supervised() as (_, port):
        assert ask(port, "/livez") == YES
        asyncio.get_running_loop().call_soon(get_stuck, port)
        await until(lambda: seen and ask(port, "/livez") == YES, "it turns again", 30)

    assert [status for status, _ in seen] == [503, 503, 200, 200]
    assert "the supervisor's loop has not turned" in seen[0][1]
    (told,) = lines(caplog, "worker_stuck")
    assert "in get_stuck" in told["stacks"], "the log says where, once"
