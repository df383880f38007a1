"""A worker whose Redis is full, a replica, loading or away: when it starts, and while it works."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess
from tests.support.troubles import NO_WRITES, Trouble, Troubled, troubled_server
from tests.support.waiting import wait_until
from tidework.client import Client
from tidework.errors import BrokerFullError
from tidework.settings import Settings

SERVED = ["jobs", "fresh"]
"""The first is known; nobody has heard of the second."""


@pytest.fixture
def redis() -> Iterator[Troubled]:
    with troubled_server() as found:
        yield found


@pytest.fixture
def own_jobs(redis: Troubled, namespace: str) -> Jobs:
    return Jobs(Client(Settings(redis_url=redis.url, namespace=namespace)))


def wait_told(worker: WorkerProcess, trouble: Trouble) -> str:
    """What it says of its wait."""
    text = str(worker.wait_event("queue_not_opened")["message"])
    assert trouble.value in text
    return text


@pytest.mark.parametrize("trouble", NO_WRITES)
def test_a_worker_waits_until_redis_serves_and_says_so(
    redis: Troubled, start_worker: StartWorker, own_jobs: Jobs, namespace: str, trouble: Trouble
) -> None:
    job_id = own_jobs.put("add", a=1, b=2)
    redis.begin(trouble)

    worker = start_worker(redis_url=redis.url, queue=SERVED)
    assert f"queue {namespace}/jobs cannot be opened yet" in wait_told(worker, trouble)
    assert worker.probe("/livez")[0] == 200
    assert worker.probe("/readyz")[0] == 503
    redis.mend(trouble)

    assert worker.wait_event("queue_opened")["namespace"] == namespace
    worker.wait_started()
    assert own_jobs.result(job_id) == 3
    assert own_jobs.get(job_id).deliveries == 1


@pytest.mark.parametrize("trouble", NO_WRITES)
def test_a_worker_that_waits_ends_at_sigterm(
    redis: Troubled, start_worker: StartWorker, trouble: Trouble
) -> None:
    redis.begin(trouble)
    worker = start_worker(redis_url=redis.url)
    wait_told(worker, trouble)

    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    redis.mend(trouble)


def test_a_worker_with_a_new_queue_serves_all_of_a_full_server(
    redis: Troubled, start_worker: StartWorker, own_jobs: Jobs
) -> None:
    ids = own_jobs.put_many("add", [{"a": n, "b": n} for n in range(5)])
    redis.begin(Trouble.FULL)

    worker = start_worker(redis_url=redis.url, queue=SERVED).wait_started()

    assert [own_jobs.result(job_id) for job_id in ids] == [0, 2, 4, 6, 8]
    with pytest.raises(BrokerFullError):
        own_jobs.put("add", a=1, b=1)
    redis.mend(Trouble.FULL)
    fresh = Jobs(own_jobs.client, "fresh")
    assert fresh.result(fresh.put("add", a=1, b=1)) == 2
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.parametrize("task", ["charge", "charge_async"])
def test_a_job_with_a_block_that_is_done_once_ends_on_a_full_server(
    redis: Troubled, start_worker: StartWorker, own_jobs: Jobs, folder: Path, task: str
) -> None:
    job_id = own_jobs.put(task, folder=str(folder))
    (folder / "go").touch()
    redis.begin(Trouble.FULL)

    places = {"async_slots": 1} if task == "charge_async" else {"slots": 1}
    start_worker("charges", redis_url=redis.url, **places).wait_started()

    assert own_jobs.result(job_id) is True
    assert own_jobs.get(job_id).attempt == 1


@pytest.mark.parametrize("trouble", NO_WRITES)
def test_an_outcome_is_kept_until_redis_serves_again(
    redis: Troubled, start_worker: StartWorker, own_jobs: Jobs, folder: Path, trouble: Trouble
) -> None:
    worker = start_worker(redis_url=redis.url).wait_started()
    job_id = own_jobs.put("hold", path=str(folder / "a"))
    wait_until((folder / "a.began").exists, "the job runs")

    redis.begin(trouble)
    (folder / "a.go").touch()
    worker.wait_event("job_succeeded")
    wait_until(lambda: trouble.value in worker.whole_text(), "it says why it cannot settle")
    redis.mend(trouble)

    assert own_jobs.result(job_id) == "held"
    assert own_jobs.get(job_id).deliveries == 1
    worker.wait_event("redis_back")
    assert own_jobs.result(own_jobs.put("add", a=1, b=1)) == 2, "it works on"


def test_an_outcome_is_settled_on_a_server_that_is_full_by_now(
    redis: Troubled, start_worker: StartWorker, own_jobs: Jobs, folder: Path
) -> None:
    start_worker(redis_url=redis.url).wait_started()
    job_id = own_jobs.put("hold", path=str(folder / "a"))
    wait_until((folder / "a.began").exists, "the job runs")

    redis.begin(Trouble.FULL)
    (folder / "a.go").touch()

    assert own_jobs.result(job_id) == "held"
