"""Redis dies, comes late, or never comes back: jobs run on, outcomes are kept, nothing hangs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.support.servers import ValkeyServer
from tests.support.waiting import wait_until
from tidework.client import Client
from tidework.settings import Settings


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as found:
        yield found


@pytest.fixture
def own_jobs(server: ValkeyServer, namespace: str) -> Jobs:
    return Jobs(Client(Settings(redis_url=server.url, namespace=namespace)))


def test_an_outcome_is_kept_until_redis_is_back(
    server: ValkeyServer, start_worker: StartWorker, own_jobs: Jobs, folder: Path
) -> None:
    worker = start_worker(redis_url=server.url).wait_started()
    job_id = own_jobs.put("hold", path=str(folder / "a"))
    wait_until((folder / "a.began").exists, "the job runs")

    server.sync_and_kill()
    (folder / "a.go").touch()
    worker.wait_event("job_succeeded")
    wait_until(lambda: worker.metric("tidework_redis_errors_total") > 0, "Redis is missed")
    assert worker.probe("/livez")[0] == 200
    assert worker.probe("/readyz")[0] == 200
    server.restart()

    assert own_jobs.result(job_id) == "held"
    assert own_jobs.get(job_id).deliveries == 1
    assert own_jobs.result(own_jobs.put("add", a=1, b=1)) == 2, "it works on"
    worker.wait_event("redis_back")


@pytest.mark.parametrize("task", ["charge", "charge_async"])
def test_a_block_that_ends_while_redis_is_away_is_done_and_not_done_again(
    server: ValkeyServer, start_worker: StartWorker, own_jobs: Jobs, folder: Path, task: str
) -> None:
    places = {"async_slots": 1} if task == "charge_async" else {"slots": 1}
    worker = start_worker("charges", redis_url=server.url, **places).wait_started()
    job_id = own_jobs.put(task, folder=str(folder), waits=True)
    wait_until(lambda: list(folder.glob("began.*")), "the block began")

    server.sync_and_kill()
    (folder / "go").touch()
    worker.wait_event("once_not_noted")
    server.restart()

    assert own_jobs.result(job_id) is True
    assert own_jobs.get(job_id).deliveries == 1
    assert own_jobs.result(own_jobs.put(task, folder=str(folder))) is False
    assert len(list(folder.glob("charged.*"))) == 1


def test_a_worker_waits_for_a_redis_that_comes_late(
    server: ValkeyServer, start_worker: StartWorker, own_jobs: Jobs
) -> None:
    server.sync_and_kill()
    worker = start_worker(redis_url=server.url)
    worker.wait_event("queue_not_opened")
    assert worker.probe("/readyz")[0] == 503

    server.restart()

    worker.wait_started()
    assert own_jobs.result(own_jobs.put("add", a=1, b=1)) == 2


def test_a_drain_without_redis_ends(
    server: ValkeyServer, start_worker: StartWorker, own_jobs: Jobs, folder: Path
) -> None:
    worker = start_worker(redis_url=server.url).wait_started()
    own_jobs.put("hold", path=str(folder / "a"))
    wait_until((folder / "a.began").exists, "the job runs")
    server.sync_and_kill()
    (folder / "a.go").touch()
    worker.wait_event("job_succeeded")

    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    assert worker.events("settlements_left")


def test_a_redis_that_wants_a_password_is_a_clear_error(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    with ValkeyServer(None, "--requirepass", "secret") as guarded:
        worker = start_worker(redis_url=guarded.url)

        assert worker.wait() == 2

    (line,) = worker.events("worker_misconfigured")
    assert "credentials" in line["message"]
    assert "redis://USER:PASSWORD@" in line["message"]
